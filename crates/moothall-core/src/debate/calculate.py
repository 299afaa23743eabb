# Runs a calculation of a debate: gives it the facts, collects its results, and prints one line of
# JSON. The sandbox contains the program; this file makes ordinary programs repeatable and readable.


def _calculate():
    import ast
    import builtins
    import decimal
    import json
    import os
    import sys
    from collections import abc

    Decimal = decimal.Decimal
    modules = {
        "collections", "decimal", "fractions", "functools", "itertools", "math", "statistics",
    }
    without = {
        "breakpoint", "compile", "eval", "exec", "exit", "hash", "help", "id", "input", "open", "quit",
    }
    output = os.fdopen(os.dup(1), "w", encoding="ascii")
    report = {"error": None, "facts": [], "literals": [], "values": []}

    class Facts:
        def __init__(self, values):
            self._values = values

        def _key(self, key):
            return key.removeprefix("F0:") if isinstance(key, str) else key

        def __getitem__(self, key):
            key = self._key(key)
            if key not in self._values:
                raise KeyError(f"there is no fact {key}")
            if key not in report["facts"]:
                report["facts"].append(key)
            return Decimal(self._values[key])

        def __contains__(self, key):
            return self._key(key) in self._values

        def __iter__(self):
            return iter(self._values)

        def keys(self):
            return list(self._values)

        def get(self, key, default=None):
            return self[key] if key in self else default

    def result(name, value, unit=""):
        if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
            raise TypeError(f"{name} is a {type(value).__name__}; a value is a Decimal or an int")
        value = Decimal(value)
        if not value.is_finite():
            raise ValueError(f"{name} is not a finite number")
        if value != value.to_integral_value():
            value = decimal.Context(prec=15).plus(value).normalize()
        text = format(value, "f")
        report["values"].append({"name": str(name), "value": text, "unit": str(unit)})

    class Set(abc.MutableSet):
        # Keeps the order of insertion. The order of a built-in set differs between two processes.
        __hash__ = abc.Set._hash

        def __init__(self, items=()):
            self._items = dict.fromkeys(items)

        def __contains__(self, item):
            return item in self._items

        def __iter__(self):
            return iter(self._items)

        def __len__(self):
            return len(self._items)

        def __repr__(self):
            return "{" + ", ".join(map(repr, self)) + "}" if self else "set()"

        def add(self, item):
            self._items[item] = None

        def discard(self, item):
            self._items.pop(item, None)

        def copy(self):
            return Set(self)

        def update(self, *others):
            for other in others:
                self._items.update(dict.fromkeys(other))

        def union(self, *others):
            result = Set(self)
            result.update(*others)
            return result

        def intersection(self, *others):
            others = [Set(other) for other in others]
            return Set(item for item in self if all(item in other for other in others))

        def difference(self, *others):
            others = [Set(other) for other in others]
            return Set(item for item in self if not any(item in other for other in others))

        def issubset(self, other):
            return self <= Set(other)

        def issuperset(self, other):
            return self >= Set(other)

    class Repeatable(ast.NodeTransformer):
        # Decimals instead of binary fractions: 0.1 and 1 / 4 are exact. Sets with an order.
        def _call(self, node, name, value):
            call = ast.Call(ast.Name(name, ast.Load()), [value], [])
            return ast.fix_missing_locations(ast.copy_location(call, node))

        def _decimal(self, node, value):
            return self._call(node, "Decimal", value)

        def visit_Set(self, node):
            self.generic_visit(node)
            return self._call(node, "set", ast.List(node.elts, ast.Load()))

        def visit_SetComp(self, node):
            self.generic_visit(node)
            return self._call(node, "set", ast.ListComp(node.elt, node.generators))

        def visit_Constant(self, node):
            if isinstance(node.value, float):
                return self._decimal(node, ast.Constant(repr(node.value)))
            return node

        def visit_JoinedStr(self, node):
            return node

        def visit_BinOp(self, node):
            self.generic_visit(node)
            if isinstance(node.op, ast.Div):
                node.left = self._decimal(node, node.left)
            return node

    class Sink:
        def write(self, text):
            return len(text)

        def flush(self):
            pass

    def load(name, globals=None, locals=None, fromlist=(), level=0):
        if level or name.partition(".")[0] not in modules:
            raise ImportError(f"a calculation cannot import {name}")
        return builtins.__import__(name, globals, locals, fromlist, level)

    def literals(tree):
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and not isinstance(node.value, (bool, type(None))):
                value = node.value
                text = value.decode("latin-1") if isinstance(value, bytes) else str(value)
                try:
                    number = Decimal(text.strip())
                except (ArithmeticError, ValueError):
                    continue
                small = number.is_finite() and abs(number.adjusted()) < 25
                yield format(number.normalize(), "f") if small else text.strip()[:40]

    def where(error):
        line = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else None
        trace = error.__traceback__
        while trace:
            if trace.tb_frame.f_code.co_filename == "calculation.py":
                line = trace.tb_lineno
            trace = trace.tb_next
        return f" (line {line})" if line else ""

    names = {name: getattr(builtins, name) for name in dir(builtins) if name not in without}
    names |= {"__import__": load, "set": Set, "frozenset": Set}
    try:
        with open("/inputs/facts.json", encoding="utf-8") as file:
            facts = Facts(json.load(file))
        with open("calculation.py", encoding="utf-8") as file:
            tree = ast.parse(file.read(), "calculation.py")
        report["literals"] = list(dict.fromkeys(literals(tree)))[:60]
        code = compile(Repeatable().visit(tree), "calculation.py", "exec")
        sys.stdout = sys.stderr = Sink()
        space = {"__name__": "__main__", "__builtins__": names}
        exec(code, space | {"facts": facts, "result": result, "Decimal": Decimal})
        if not report["values"]:
            report["error"] = "it returned no result"
    except BaseException as error:
        words = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
        report["error"] = f"{type(error).__name__}: {words[:160]}{where(error)}"
    report["facts"].sort()
    output.write(json.dumps(report, sort_keys=True, separators=(",", ":")) + "\n")
    output.flush()
    os._exit(0)


_calculate()
