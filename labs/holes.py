"""What is a hole, in the text of a module? Emptied, filled and recognised by syntax trees; nothing is imported."""

import ast
import re


def is_exercise(node) -> bool:
    """Whether this is a function under the decorator `exercise`."""
    decorators = getattr(node, "decorator_list", ())
    return any(ast.unparse(d).split("(")[0].rpartition(".")[2] == "exercise" for d in decorators)


def undocumented(body: list) -> list:
    """The statements of a function below its docstring."""
    first = body[0] if body else None
    text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    return body[1:] if text else body


def is_empty(function: ast.FunctionDef) -> bool:
    """What costlib.exercise.is_empty says of a function, without importing its file."""
    body = undocumented(function.body)
    return len(body) == 1 and ast.unparse(body[0]) in ("raise Unfilled", "raise Unfilled()")


def empty(source: str) -> str:
    """A module in which every exercise is its decorator, signature, docstring and `raise Unfilled`; the rest as it is.

    Comments go with the body: what stands below the docstring and deeper than the `def`.
    """
    lines = source.split("\n")
    for node in reversed([node for node in ast.parse(source).body if is_exercise(node)]):
        first, end = node.body[0], node.end_lineno
        while end < len(lines) and re.match(r"[ \t]", lines[end]):  # a comment after the last statement
            end += 1
        if len(undocumented(node.body)) < len(node.body):
            kept = [*lines[: first.end_lineno - 1], lines[first.end_lineno - 1].encode()[: first.end_col_offset].decode()]
        elif first.lineno == node.lineno:  # def f(): return 1
            kept = [*lines[: node.lineno - 1], lines[node.lineno - 1].encode()[: first.col_offset].decode().rstrip()]
        else:
            kept = lines[: first.lineno - 1]
            while kept[-1].lstrip().startswith("#"):
                kept.pop()
        lines = [*kept, "    raise Unfilled", *lines[end:]]
    return "\n".join(lines)


def filled(source: str, answers: str, module: str) -> str:
    """An exercise module with the bodies of the functions of the same name in `answers`, and what these import."""
    tree, given = ast.parse(source), ast.parse(answers)
    bodies = {node.name: node.body for node in given.body if isinstance(node, ast.FunctionDef)}
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and function.name in bodies:
            function.body = [function.body[0], *bodies[function.name]]
    head, *rest = tree.body
    own, kinds = f"costlib.{module}", (ast.Import, ast.ImportFrom)
    imports = [node for node in given.body if isinstance(node, kinds) and getattr(node, "module", "") != own]
    others = [node for node in given.body if not isinstance(node, (*kinds, ast.FunctionDef, ast.Expr))]
    tree.body = [head, *imports, *rest, *others]
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
