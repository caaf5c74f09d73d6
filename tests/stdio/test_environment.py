from mcprelay.stdio.environment import child_environment

OURS = {
    "PATH": "/bin",
    "HOME": "/home/u",
    "LANG": "C.UTF-8",
    "SECRET_KEY": "s",
    "SHELL": "() { :; }; echo",
    "AWS_PROFILE": "p",
}


def test_a_child_inherits_where_things_are_and_no_secret():
    assert child_environment(inherited=OURS) == {"PATH": "/bin", "HOME": "/home/u", "LANG": "C.UTF-8"}


def test_what_is_given_is_added_and_wins():
    extra = {"PATH": "/usr/bin", "SECRET_KEY": "mine"}
    assert child_environment(extra, inherited=OURS) == {
        "PATH": "/usr/bin", "HOME": "/home/u", "LANG": "C.UTF-8", "SECRET_KEY": "mine",
    }  # fmt: skip


def test_the_environment_of_this_process_is_the_default(monkeypatch):
    monkeypatch.setenv("HOME", "/home/here")
    monkeypatch.setenv("TOKEN", "secret")
    environment = child_environment()
    assert environment["HOME"] == "/home/here"
    assert "TOKEN" not in environment
