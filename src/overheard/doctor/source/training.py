"""Which data an app trains on, and what is computed from them."""

import ast
from functools import lru_cache
from itertools import islice
from typing import final

from overheard.doctor.source.code import Flow
from overheard.doctor.source.privacy import MOST_FOLLOWED, PrivateApp


@final
class TrainingData:
    """What loops with a backward pass read."""

    def __init__(self, app: PrivateApp) -> None:
        self._app = app
        self.losses = set[ast.AST]()
        """The expressions that `backward` is called on, and what their names are bound to."""
        self._data = set[ast.AST]()
        backward = (site for site in app.code.calls if site.last == "backward")
        for site in islice(backward, MOST_FOLLOWED):
            if not isinstance(site.call.func, ast.Attribute):
                continue
            frame = app.code.frame(site.function)
            self.losses |= {
                one.node
                for one in app.code.sources(Flow(site.call.func.value, frame), derived=False)
                if isinstance(one.node, ast.Call | ast.BinOp)
            }
            for outer, _ in app.code.around(site.call):
                if isinstance(outer, ast.For):
                    self._data |= self._loaders(Flow(outer.iter, frame))

    def shown_by(self, flow: Flow) -> ast.AST | None:
        """Return what shows that a value is computed from training data; None = nothing."""
        for one in self._app.code.sources(flow, derived=True):
            if one.node in self.losses:
                return one.node
            if self._is_history(one):
                return one.node
            if one.node in self._data:
                return one.node
        return None

    def is_boundary(self, node: ast.AST) -> bool:
        """Return whether an expression is a loss, or a loader of data."""
        return node in self.losses or _is_loader(node)

    def reads_data(self, flow: Flow) -> bool:
        """Return whether a value is computed from any loader of data."""
        return any(_is_loader(one.node) for one in self._app.code.sources(flow, derived=True))

    def _loaders(self, flow: Flow) -> set[ast.AST]:
        """Return the loaders that a loop reads."""
        sources = self._app.code.sources(flow, derived=True)
        return {one.node for one in sources if _is_loader(one.node)}

    def _is_history(self, flow: Flow) -> bool:
        match flow.node:
            case ast.Attribute(attr="history", value=value):
                return any(
                    isinstance(one.node, ast.Call)
                    and isinstance(one.node.func, ast.Attribute)
                    and one.node.func.attr == "fit"
                    for one in self._app.code.sources(Flow(value, flow.frame), derived=False)
                )
        return False


@lru_cache(maxsize=1)
def training_data(app: PrivateApp) -> TrainingData:
    """Return what an app trains on."""
    return TrainingData(app)


def _is_loader(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    func = node.func
    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    return name.endswith("DataLoader")
