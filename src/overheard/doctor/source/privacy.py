"""What an app does for differential privacy, when it runs, and what its clients send."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, islice
from typing import Literal, final

from overheard.doctor.source.code import (
    AppCode,
    CallSite,
    Flow,
    Function,
    Place,
    keyword,
)

MOST_FOLLOWED = 100
"""The most draws of noise, and the most values that are sent, that are looked at."""

Kind = Literal["dp_sgd", "central", "local", "accounting", "own noise"]
"""DP-SGD in clients; noise by the server; noise on a client's update; accounting alone; noise
that the app adds by itself."""

_LIBRARIES: Sequence[tuple[Kind, str]] = (
    (
        "dp_sgd",
        r"opacus\.(?!accountants)(.*\.)?(PrivacyEngine\w*|DP\w*Optimizer|GradSample\w+)",
    ),
    ("dp_sgd", r"tensorflow_privacy\.(.*\.)?(\w*DP\w*|make_\w*optimizer\w*)"),
    (
        "dp_sgd",
        r"jax_privacy\..*(clipped_grad|make_private|DPKerasConfig|BandMF\w*|\w*privatizer)",
    ),
    ("dp_sgd", r"optax\.(contrib\.)?(dpsgd|differentially_private_aggregate)"),
    ("dp_sgd", r"fl4health\..*(InstanceLevelDp\w+|DPScaffold\w+)"),
    ("central", r"fl4health\..*NumpyClippingClient"),
    ("central", r"fl4health\..*(ClientLevelDPFedAvg\w*|client_dp_fedavgm\..*)"),
    ("central", r"flwr\..*(DifferentialPrivacy\w+Clipping|DPFedAvg\w+|Dpfedavg\w+)"),
    ("local", r"flwr\..*LocalDpMod"),
    ("local", r"nvflare\..*SVTPrivacy"),
    ("accounting", r"(dp_accounting|opacus\.accountants)\..*"),
)
"""Names of libraries, by what they do."""

_DRAWS: Sequence[tuple[str, str]] = (
    ("torch", r"torch\.(normal|randn|randn_like)|torch\.distributions\..*"),
    ("numpy", r"numpy\.random\.(normal|laplace|standard_normal|randn)"),
    ("jax", r"jax\.random\.(normal|laplace)"),
    ("tensorflow", r"tensorflow\.random\.(normal|stateless_normal)"),
    ("python", r"random\.gauss"),
)
"""Functions that draw noise, by the library whose generator they use."""

_WORDS = frozenset(
    re.split(
        r"\s",
        "dp ldp cdp dpsgd privacy private privately privatize privatise differential "
        "differentially sensitivity",
    )
)
_CLIP_WORDS = frozenset({"clip", "clipped", "clipping"})
_NOISE_WORDS = frozenset({"noise", "noisy", "sigma", "epsilon", "gaussian", "laplace"})


@final
@dataclass(frozen=True, slots=True, eq=False)
class PrivacyStep:
    """A place where an app does something for differential privacy."""

    kind: Kind
    name: str
    node: ast.AST
    function: Function


@final
@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """Noise that the app draws by itself and adds to something.

    Args:
        call: the call that draws.
        function: the function around it.
        library: the library whose generator is used.
        is_on_gradient: whether it is added to gradients in the same function.

    """

    call: ast.Call
    function: Function
    library: str
    is_on_gradient: bool


@final
@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """A value that a client sends to the server.

    Args:
        key: the name it has there; "" = unknown.
        flow: the value.
        node: the expression, to tell the place.
        is_evaluation: whether it answers a request to evaluate a model.

    """

    key: str
    flow: Flow
    node: ast.AST
    is_evaluation: bool


@final
class PrivateApp:
    """The code of an app, with what matters to rules on differential privacy."""

    def __init__(self, code: AppCode) -> None:
        self.code = code

    @cached_property
    def mechanisms(self) -> tuple[PrivacyStep, ...]:
        """All places where the app does something for differential privacy."""
        found = [*self._named(), *self._based()]
        found += [
            PrivacyStep(
                "own noise",
                self.code.dotted(one.call.func, one.function),
                one.call,
                one.function,
            )
            for one in self.draws
        ]
        return tuple(found)

    def has(self, *kinds: Kind) -> bool:
        """Return whether there is a mechanism of one of these kinds."""
        return any(one.kind in kinds for one in self.mechanisms)

    @property
    def is_private(self) -> bool:
        """Whether there is any mechanism but accounting alone."""
        return self.has("dp_sgd", "central", "local", "own noise")

    def _named(self) -> Iterator[PrivacyStep]:
        for site in self.code.calls:
            for kind, pattern in _LIBRARIES:
                if re.fullmatch(pattern, site.dotted):
                    yield PrivacyStep(kind, site.dotted, site.call, site.function)
                    break

    def _based(self) -> Iterator[PrivacyStep]:
        for file, node in self.code.classes():
            for base in sorted(self.code.bases(file, node)):
                for kind, pattern in _LIBRARIES:
                    if re.fullmatch(pattern, base):
                        yield PrivacyStep(kind, base, node, self.code.function_of(node))
                        break

    @cached_property
    def draws(self) -> tuple[Draw, ...]:
        """The noise that the app draws by itself, where names speak of privacy."""
        return tuple(islice(self._draws(), MOST_FOLLOWED))

    def _draws(self) -> Iterator[Draw]:
        drawing = (site for site in self.code.calls if self._library(site) is not None)
        for site in islice(drawing, MOST_FOLLOWED):
            library = self._library(site)
            if library is None or not _speaks_of_privacy(site.function):
                continue
            added = self._added_to(site)
            first = next(added, None)
            if first is not None:
                on_gradient = takes_gradients(self.code, site.function) and any(
                    "grad" in one for one in chain([first], added)
                )
                yield Draw(site.call, site.function, library, on_gradient)

    def _library(self, site: CallSite) -> str | None:
        for library, pattern in _DRAWS:
            if re.fullmatch(pattern, site.dotted):
                return library
        if site.last in ("normal", "laplace", "standard_normal") and isinstance(
            site.call.func, ast.Attribute
        ):
            for one in self.values(site.call.func.value, site.function):
                made = self.code.dotted(getattr(one, "func", one), site.function)
                if made.endswith(("default_rng", "RandomState")):
                    return "numpy"
        if site.last == "normal_" and isinstance(site.call.func, ast.Attribute):
            return "torch"
        if site.last == "add_gaussian_noise_inplace":
            return "numpy"
        return None

    def _added_to(self, site: CallSite) -> Iterator[str]:
        """Yield the text of each sum in the function that has the noise in it."""
        names, grown = set[str](), True
        if site.last == "add_gaussian_noise_inplace":
            yield self.code.place(site.call, site.function).code
        for outer, _ in self.code.around(site.call):
            if _is_sum(outer):
                yield self.code.place(outer, site.function).code
            if isinstance(outer, ast.Assign):
                names |= {one for target in outer.targets for one in _names(target)}
        flows = _name_flows(site.function)
        while grown:
            grown = False
            for targets, values in flows:
                if names & values and not targets <= names:
                    names |= targets
                    grown = True
        for node, values in _sums(site.function):
            if names & values:
                yield self.code.place(node, site.function).code

    def values(self, node: ast.AST, function: Function) -> Iterator[ast.AST]:
        """Yield the expressions that a name or attribute stands for."""
        for one in self.code.sources(Flow(node, self.code.frame(function)), derived=False):
            yield one.node

    @cached_property
    def loops(self) -> tuple[ast.While, ...]:
        """The loops of NVFlare's client API, which receive a message in each pass."""
        return tuple(
            node
            for file in self.code.files
            for node in ast.walk(file.tree)
            if isinstance(node, ast.While)
            if any(
                isinstance(one, ast.Call)
                and self.code.dotted(one.func, self.code.function_of(node)).endswith(
                    ".is_running"
                )
                for one in ast.walk(node.test)
            )
        )

    @cached_property
    def client_functions(self) -> frozenset[Function]:
        """The functions `client_fn`, which Flower calls for each message."""
        found = set[Function]()
        for site in self.code.calls:
            if site.last in ("ClientApp", "start_simulation"):
                given = keyword(site.call, "client_fn", 0 if site.last == "ClientApp" else None)
                target = self.code.target(given, site.function) if given else None
                found |= {target} if target else set()
        return frozenset(found)

    @cached_property
    def handlers(self) -> tuple[Function, ...]:
        """The functions that answer messages of the server."""
        return tuple(self._handlers())

    def _handlers(self) -> Iterator[Function]:
        for function in self.code.functions:
            if isinstance(function.node, ast.Module):
                continue
            for one in function.node.decorator_list:
                called = one.func if isinstance(one, ast.Call) else one
                if isinstance(called, ast.Attribute) and called.attr in _ACTIONS:
                    made = [
                        self.code.dotted(value.func, function)
                        for value in self.values(called.value, function)
                        if isinstance(value, ast.Call)
                    ]
                    if any(name.endswith("ClientApp") for name in made):
                        yield function
                elif self.code.dotted(called, function).startswith("nvflare.client."):
                    yield function
        for file, node in self.code.classes():
            bases = self.code.bases(file, node)
            for pattern, names in _CLIENTS:
                if any(re.fullmatch(pattern, base) for base in bases):
                    for name in names:
                        method = self.code.method(node, name)
                        if method is not None:
                            yield method

    @cached_property
    def per_message(self) -> frozenset[Function]:
        """The functions that run for each message of the server."""
        starts: list[ast.AST] = [one.node for one in self.handlers]
        starts += [one.node for one in self.client_functions]
        starts += [statement for loop in self.loops for statement in loop.body]
        found = self.code.reached(starts) | set(self.handlers) | self.client_functions
        return frozenset(found)

    def is_per_message(self, node: ast.AST) -> bool:
        """Return whether code runs for each message of the server."""
        if self.code.function_of(node) in self.per_message:
            return True
        return any(outer in self.loops for outer, _ in self.code.around(node))

    def kept_clients(self) -> Iterator[Place]:
        """Yield where one client object is made that stays for all messages."""
        for site in self.code.calls:
            is_start = site.last in ("start_client", "start_numpy_client")
            if is_start and keyword(site.call, "client") is not None:
                yield self.code.place(site.call, site.function)

    def is_once(self, node: ast.AST) -> bool:
        """Return whether a condition around code, or around its calls, lets it run once."""
        function = self.code.function_of(node)
        if self._is_guarded(node) or _is_cached(function):
            return True
        sites = self.code.callers(function)
        return (
            bool(sites)
            and all(
                self._is_guarded(one.call) for one in sites if self.is_per_message(one.call)
            )
            and any(self.is_per_message(one.call) for one in sites)
        )

    def _is_guarded(self, node: ast.AST) -> bool:
        return any(
            isinstance(outer, ast.If)
            and inner in (*outer.body, *outer.orelse)
            and _is_first_time(outer.test)
            and not self._is_new_each_time(outer.test)
            for outer, inner in self.code.around(node)
        )

    def _is_new_each_time(self, test: ast.expr) -> bool:
        """Return whether a condition is on an attribute of an object made for each message."""
        function = self.code.function_of(test)
        reads_self = (
            any(
                isinstance(one, ast.Attribute)
                and isinstance(one.value, ast.Name)
                and one.value.id == "self"
                for one in ast.walk(test)
            )
            or "hasattr(self" in self.code.place(test, function).code
        )
        if not reads_self or function.owner is None:
            return False
        return any(
            site.function in self.client_functions
            and self.code.class_named(site.call.func, site.function) is function.owner
            for site in self.code.calls
        )

    @cached_property
    def sent(self) -> tuple[Sent, ...]:
        """What clients send beside models."""
        return tuple(islice(self._sent(), MOST_FOLLOWED))

    def _sent(self) -> Iterator[Sent]:
        for function in self.handlers:
            if function.owner is not None:
                yield from self._returned(function)
        for site in self.code.calls:
            if self.is_per_message(site.call):
                yield from self._recorded(site)

    def _returned(self, function: Function) -> Iterator[Sent]:
        """Yield what the method of a client of Flower returns beside the model."""
        frame = self.code.frame(function)
        is_evaluation = function.name == "evaluate"
        for node in ast.walk(function.node):
            match node:
                case ast.Return(value=ast.Tuple(elts=[first, second, metrics])) if (
                    self.code.function_of(node) is function
                ):
                    yield Sent("num-examples", Flow(second, frame), second, is_evaluation)
                    if is_evaluation:
                        yield Sent("loss", Flow(first, frame), first, is_evaluation)
                    yield from self._items(Flow(metrics, frame), metrics, is_evaluation)

    def _recorded(self, site: CallSite) -> Iterator[Sent]:
        """Yield what a call puts into a reply or a stream of metrics."""
        frame, call = self.code.frame(site.function), site.call
        is_evaluation = "eval" in site.function.name
        if site.last in ("MetricRecord", "MetricsRecord", "ConfigRecord") and call.args:
            yield from self._items(Flow(call.args[0], frame), call.args[0], is_evaluation)
        elif site.last == "FLModel":
            for name in ("metrics", "meta"):
                given = keyword(call, name)
                if given is not None:
                    yield from self._items(Flow(given, frame), given, False)
        elif site.last in ("add_scalar", "log_metric") and self._is_streamed(site):
            names = ("tag", "scalar") if site.last == "add_scalar" else ("key", "value")
            key, value = (keyword(call, name, at) for at, name in enumerate(names))
            if value is not None:
                yield Sent(_text(key), Flow(value, frame), value, False)

    def _is_streamed(self, site: CallSite) -> bool:
        """Return whether a writer of metrics sends them to the server, as NVFlare's do."""
        assert isinstance(site.call.func, ast.Attribute)
        flow = Flow(site.call.func.value, self.code.frame(site.function))
        return any(
            isinstance(one.node, ast.Call)
            and self.code.dotted(one.node.func, one.frame.function).startswith(
                "nvflare.client.tracking."
            )
            for one in self.code.sources(flow, derived=False)
        )

    def _items(self, flow: Flow, node: ast.AST, is_evaluation: bool) -> Iterator[Sent]:
        """Yield the items of a dictionary."""
        is_known = False
        for one in self.code.sources(flow, derived=False):
            if isinstance(one.node, ast.Dict):
                is_known = True
                for key, value in zip(one.node.keys, one.node.values, strict=True):
                    at = value if one.frame.function is flow.frame.function else node
                    if key is None:
                        yield from self._items(Flow(value, one.frame), at, is_evaluation)
                    else:
                        yield Sent(_text(key), Flow(value, one.frame), value, is_evaluation)
        if not is_known:
            yield Sent("", flow, node, is_evaluation)

    def places(self, *nodes: ast.AST) -> tuple[Place, ...]:
        """Return where nodes are, each line once."""
        found = [self.code.place(one, self.code.function_of(one)) for one in nodes]
        return tuple(dict.fromkeys(found))


_ACTIONS = frozenset({"train", "evaluate", "query"})
_CLIENTS: Sequence[tuple[str, tuple[str, ...]]] = (
    (r"(flwr\..*\.)?(NumPyClient|Client)", ("fit", "evaluate", "get_parameters")),
    (r"(nvflare\..*\.)?(Executor|Learner|ModelLearner)", ("execute", "train", "validate")),
    (r"(nvflare\..*\.)?(DXOFilter|Filter)", ("process", "process_dxo")),
)


@lru_cache(maxsize=1024)
def _speaks_of_privacy(function: Function) -> bool:
    """Return whether names in a function, or its own, speak of privacy."""
    names = {function.name, function.owner.name if function.owner else "", function.file.module}
    for node in ast.walk(function.node) if function.name else ():
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                names.add(name)
    words = {
        word
        for name in names
        for word in re.findall(r"[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]+", name)
    }
    lower = {word.lower() for word in words}
    return bool(lower & _WORDS) or bool(lower & _CLIP_WORDS and lower & _NOISE_WORDS)


@lru_cache(maxsize=64)
def _name_flows(function: Function) -> Sequence[tuple[frozenset[str], frozenset[str]]]:
    """Return the names that each statement of a function binds, with those that it reads."""
    found = list[tuple[frozenset[str], frozenset[str]]]()
    for node in ast.walk(function.node):
        match node:
            case (
                ast.Assign(targets=[target], value=value)
                | ast.comprehension(target=target, iter=value)
            ):
                found.append((frozenset(_names(target)), frozenset(_names(value))))
    return found


@lru_cache(maxsize=64)
def _sums(function: Function) -> Sequence[tuple[ast.AST, frozenset[str]]]:
    """Return the sums in a function, with the names in each."""
    nodes = filter(_is_sum, ast.walk(function.node))
    return [(one, frozenset(_names(one))) for one in nodes]


def _names(node: ast.AST) -> Iterator[str]:
    return (one.id for one in ast.walk(node) if isinstance(one, ast.Name))


@lru_cache(maxsize=1024)
def takes_gradients(code: AppCode, function: Function) -> bool:
    """Return whether a function computes gradients or reads those of a model."""
    for node in ast.walk(function.node):
        match node:
            case ast.Attribute(attr="grad" | "grad_sample"):
                return True
            case ast.Call(func=func) if code.dotted(func, function).rpartition(".")[2] in (
                "backward",
                "gradient",
                "grad",
                "value_and_grad",
                "jacobian",
                "clipped_grad",
            ):
                return True
    return False


def _is_sum(node: ast.AST) -> bool:
    match node:
        case ast.BinOp(op=ast.Add() | ast.Sub()) | ast.AugAssign(op=ast.Add() | ast.Sub()):
            return True
        case ast.Call(func=ast.Attribute(attr="add_" | "add" | "sub_")):
            return True
    return False


def _is_first_time(test: ast.expr) -> bool:
    """Return whether a condition asks whether something was not done before."""
    for node in ast.walk(test):
        match node:
            case ast.Compare(ops=[ast.Is() | ast.NotIn() | ast.In() | ast.IsNot()]):
                return True
            case ast.Compare(
                left=left, ops=[ast.Eq() | ast.LtE()], comparators=[ast.Constant()]
            ):
                return "round" in ast.dump(left).lower()
            case ast.Call(func=ast.Name(id="hasattr")):
                return True
            case ast.UnaryOp(op=ast.Not(), operand=ast.Attribute()):
                return True
    return False


def _is_cached(function: Function) -> bool:
    decorators = getattr(function.node, "decorator_list", ())
    return any("cache" in ast.dump(one) for one in decorators)


def _text(node: ast.AST | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
