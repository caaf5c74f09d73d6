"""What the documentation sends people to works: `help`, `dir`, and whatever reads signatures and annotations."""

import importlib
import inspect
import pkgutil
import pydoc
import typing
from functools import cached_property

import msgspec
import pytest

import mcprelay
import mcprelay.adapters

ADAPTERS = [f"mcprelay.adapters.{module.name}" for module in pkgutil.iter_modules(mcprelay.adapters.__path__)]
LISTED = ["mcprelay", "mcprelay.auth", "mcprelay.relay", "mcprelay.revisions", "mcprelay.server", "mcprelay.testing"]
WHOLE = ["mcprelay.auth.resource", "mcprelay.auth.verifier", "mcprelay.errors", "mcprelay.ports", "mcprelay.types"]
PACKAGES = [*LISTED, *WHOLE, *ADAPTERS]


def names(package):
    """The public names of a package: what it lists, or what is defined in it."""
    module = importlib.import_module(package)
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return sorted(listed)
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == package and callable(value)
    )


def parts(value):
    """A function itself; a class with its methods."""
    yield value
    if inspect.isclass(value):
        for name, member in inspect.getmembers(value):
            if isinstance(member, property | cached_property):  # Python 3.13 takes the latter for a routine
                if not name.startswith("_"):
                    yield member.fget if isinstance(member, property) else member.func
            elif inspect.isroutine(member):
                of_ours = (getattr(member, "__module__", None) or "").startswith("mcprelay")
                if of_ours and (not name.startswith("_") or name in {"__init__", "__call__"}):
                    yield member


def has_signature(value):
    """Whether there is one at all: an exception without a constructor of its own has none."""
    try:
        inspect.signature(value)
    except ValueError:
        return False
    return True


def test_there_is_something_to_look_at():
    assert len(ADAPTERS) > 5
    assert sum(len(names(package)) for package in PACKAGES) > 200


@pytest.mark.parametrize("package", LISTED)
def test_dir_names_what_is_public(package):
    assert set(names(package)) <= set(dir(importlib.import_module(package)))


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_itself_has_help(package):
    assert package in pydoc.render_doc(importlib.import_module(package))


@pytest.mark.parametrize(("package", "name"), [(package, name) for package in PACKAGES for name in names(package)])
def test_a_public_name_has_help_a_signature_and_annotations(package, name):
    value = getattr(importlib.import_module(package), name)
    if name != "__version__":
        assert pydoc.render_doc(value)
    for part in parts(value):
        if not inspect.isclass(part) and not inspect.isroutine(part):
            continue
        if has_signature(part):
            inspect.signature(part, eval_str=True)
        typing.get_type_hints(part, include_extras=True)


def structs():
    """Every class of fields, public or not: what a public function gives may be of one."""
    modules = pkgutil.walk_packages(mcprelay.__path__, "mcprelay.")
    for module in (importlib.import_module(found.name) for found in modules if not found.name.endswith("__main__")):
        for value in vars(module).values():
            if inspect.isclass(value) and issubclass(value, msgspec.Struct) and value.__module__ == module.__name__:
                yield value


def test_whatever_class_of_fields_somebody_meets_has_help():
    found = list(structs())
    assert len(found) > 100
    for value in found:
        assert value.__qualname__ in pydoc.render_doc(value)
