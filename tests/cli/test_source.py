import sys

import pytest

from mcprelay.cli.source import find_server
from mcprelay.errors import ConfigurationError

ONE = "from mcprelay import Server\nserver = Server('one')\nagain = server\n"


@pytest.fixture(autouse=True)
def clean_modules(monkeypatch, tmp_path):
    """Modules and paths that a test imports are gone after it."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    yield
    for name in set(sys.modules) - before:
        if not name.startswith("mcprelay"):
            del sys.modules[name]


def write(tmp_path, name: str, text: str) -> str:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return str(path)


def test_the_one_server_of_a_file_is_found(tmp_path):
    assert find_server(write(tmp_path, "some_one.py", ONE)).info.name == "one"


def test_a_file_may_import_its_neighbours_and_be_pickled_from(tmp_path):
    write(tmp_path, "neighbour_x.py", "NAME = 'near'")
    server = find_server(
        write(
            tmp_path, "some_other.py", "from mcprelay import Server\nimport neighbour_x\ns = Server(neighbour_x.NAME)"
        )
    )
    assert server.info.name == "near"
    assert "some_other" in sys.modules


def test_a_file_that_is_served_is_not_run_as_a_program(tmp_path):
    text = ONE + "if __name__ == '__main__':\n    raise RuntimeError"
    assert find_server(write(tmp_path, "some_main.py", text)).info.name == "one"


@pytest.mark.parametrize("name", ["second", "holder.inner", "make"])
def test_a_name_says_which(tmp_path, name):
    text = (
        "from mcprelay import Server\nfirst, second = Server('first'), Server('second')\n"
        "class holder: inner = second\ndef make(): return second\n"
    )
    path = write(tmp_path, "some_two.py", text)
    assert find_server(f"{path}:{name}").info.name == "second"


def test_a_module_of_the_working_directory_is_found(tmp_path):
    write(tmp_path, "pack_a/__init__.py", "")
    write(tmp_path, "pack_a/mod.py", ONE)
    assert find_server("pack_a.mod:server").info.name == "one"
    assert find_server("pack_a.mod").info.name == "one"


@pytest.mark.parametrize(
    ("source", "text", "sentence"),
    [
        ("none.py", None, "there is no file"),
        ("empty.py", "x = 1", "has no Server in it. It needs a line such as"),
        ("two.py", "from mcprelay import Server\na, b = Server('a'), Server('b')", "two.py:a, two.py:b"),
        ("bad.py", "def f(:\n  pass", "bad.py cannot be imported: bad.py, line 1: SyntaxError"),
        (
            "wrong.py",
            "\n\nimport no_such_module_x",
            "wrong.py cannot be imported: wrong.py, line 3: ModuleNotFoundError",
        ),
        ("exits.py", "raise SystemExit(3)", "exits.py cannot be imported: exits.py, line 1: SystemExit: 3"),
        ("named.py:nothing", ONE, "there is no 'nothing'"),
        ("thing.py:number", "number = 3", "is no Server, and makes none: it is int"),
        ("thing.py:make", "def make(): return 3", "is no Server, and makes none: it is int"),
        ("some text", None, "is neither a .py file nor package.module:server"),
        ("no_such_package_x.mod:server", None, "no_such_package_x.mod cannot be imported: ModuleNotFoundError"),
    ],
)
def test_what_cannot_be_served_is_told(tmp_path, source, text, sentence):
    if text is not None:
        write(tmp_path, source.partition(":")[0], text)
    with pytest.raises(ConfigurationError) as caught:
        find_server(source)
    assert sentence in str(caught.value)


def test_a_mistake_in_a_definition_is_told_with_its_line(tmp_path):
    text = ONE + "@server.tool\ndef f(x: object.__class__.__mro__): ...\n@server.resource\ndef g(): ...\n"
    with pytest.raises(ConfigurationError, match=r"some_wrong.py cannot be imported: some_wrong.py, line \d: "):
        find_server(write(tmp_path, "some_wrong.py", text))


def test_a_folder_is_served_with_what_is_marked_in_it(tmp_path, capsys):
    folder = tmp_path / "handlers"
    folder.mkdir()
    (folder / "good.py").write_text("from mcprelay import tool\n@tool\ndef found_in_a_folder() -> str: return ''\n")
    (folder / "broken.py").write_text("import nothing_of_that_name\n")

    server = find_server(str(folder))

    assert server.info.name == "handlers"
    assert list(server.catalog.tools.entries) == ["found_in_a_folder"]
    assert "broken.py was skipped: ModuleNotFoundError" in capsys.readouterr().err


def test_a_folder_in_which_nothing_is_marked_is_told(tmp_path):
    with pytest.raises(ConfigurationError, match="nothing in the folder .* is marked"):
        find_server(str(tmp_path))


def test_a_name_that_makes_no_server_without_arguments_is_told():
    with pytest.raises(ConfigurationError, match="json:loads is no Server, and cannot be called to make one: missing"):
        find_server("json:loads")


def test_a_factory_that_fails_is_told_with_the_line(tmp_path):
    file = tmp_path / "factory_that_fails.py"
    file.write_text("def make():\n    return 1 // 0\n")
    with pytest.raises(ConfigurationError, match=r"cannot make a server: factory_that_fails.py, line 2: ZeroDivision"):
        find_server(f"{file}:make")
