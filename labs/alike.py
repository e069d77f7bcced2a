"""When are two pieces of code the same? Up to names, annotations, comments and layout; nothing is imported or run."""

import ast
import functools
import hashlib

from costlib.exercise import ROOT
from labs.holes import undocumented

DROPPED = {"ctx", "kind", "type_comment", "annotation", "returns", "decorator_list", "type_params"}

UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def normal(nodes: list) -> tuple:
    """These nodes with names replaced by numbers in the order of their first use, docstrings and annotations dropped."""
    numbers = {}

    def number(name):
        return numbers.setdefault(name, len(numbers))

    def shape(node):
        if isinstance(node, (ast.Name, ast.arg)):
            return number(node.id if isinstance(node, ast.Name) else node.arg)
        if isinstance(node, ast.AST):
            named = [number(node.name)] if isinstance(node, NAMED) else []
            parts = (getattr(node, name, None) for name in node._fields if name not in DROPPED and not (named and name == "name"))
            return (type(node).__name__, *named, *map(shape, parts))
        return tuple(map(shape, undocumented(node))) if isinstance(node, list) else repr(node)

    return tuple(map(shape, nodes))


class Unqualified(ast.NodeTransformer):
    """`napkin.matmul_flops` as `matmul_flops`: the reference calls through the module, a learner calls in it."""

    def __init__(self, modules):
        self.modules = modules

    def visit_Attribute(self, node):
        self.generic_visit(node)
        own = isinstance(node.value, ast.Name) and node.value.id in self.modules
        return ast.copy_location(ast.Name(node.attr, ast.Load()), node) if own else node


def functions(text: bytes, modules) -> dict:
    """{name: the normal form of its body}, of the functions of a module."""
    tree = Unqualified(modules).visit(ast.parse(text))
    return {node.name: normal(undocumented(node.body)) for node in tree.body if isinstance(node, ast.FunctionDef)}


@functools.cache
def published(module: str, modules: tuple) -> dict:
    """The same of the answers of a module, where they have more than one statement: a formula of one line is everybody's."""
    found = functions((ROOT / f"solutions/{module}.py").read_bytes(), modules)
    return {name: body for name, body in found.items() if len(body) > 1}


def as_published(files: dict[str, bytes], modules: tuple) -> tuple[list[str], int]:
    """Which functions of a submission have, up to names, the body that stands in solutions/, and of how many."""
    known = {name: body for module in modules for name, body in published(module, modules).items()}
    try:
        written = {name: body for text in files.values() for name, body in functions(text, modules).items()}
    except UNREADABLE:
        written = {}
    return [name for name in known if written.get(name) == known[name]], len(known)


def code_sha256(files: dict[str, bytes]) -> str:
    """One hash of the code of all files; "" where it cannot be read or is nested too deeply."""
    try:
        return hashlib.sha256(repr([(name, normal(ast.parse(files[name]).body)) for name in sorted(files)]).encode()).hexdigest()
    except UNREADABLE:
        return ""
