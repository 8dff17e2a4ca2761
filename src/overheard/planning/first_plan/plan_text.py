"""The text of a first plan: TOML with a comment on each choice."""

from collections.abc import Iterator
from textwrap import wrap

from overheard.core.escape import escape_unprintable
from overheard.data.datasets.no_examples import NoExamples
from overheard.learning.models.custom import Own
from overheard.planning.first_plan.plan_facts import PlanFacts
from overheard.planning.toml_notation import plan_value, toml_text, toml_value
from overheard.planning.training_facts import ASSUMED

CANDIDATE_RATES = (0.1, 0.01, 0.001)
"""Learning rates that an attacker tries who does not know how clients train."""

CANDIDATE_OPTIMIZERS = ("sgd", "adam")
"""Optimizers that an attacker tries who knows only the learning rate."""

COMMENT_WIDTH = 86
"""The most characters of a line of a comment on the data."""


def plan_text(facts: PlanFacts) -> str:
    """Return the TOML of a first plan; nothing from outside can end a comment or a string."""
    parts = (_head(facts), _data(facts), _training(facts), _arms(facts), _threats(facts))
    return "\n".join("\n".join(part) + "\n" for part in parts)


def _comment(text: str) -> str:
    return f"# {escape_unprintable(text)}"


def _head(facts: PlanFacts) -> Iterator[str]:
    yield "# A first plan, written by `overheard init`. Change what you know better."
    if facts.recording is None:
        yield 'title = "What a simulated federation reveals"'
        yield ""
        yield "# One run of every arm for each seed. One is quick; a verdict may need more."
    else:
        folder = facts.recording.resolve()
        name = folder.parent.name if folder.name == "transcript" else folder.name
        yield f"title = {toml_text(f'What the recorded run “{name[:150]}” reveals')}"
        yield ""
        if not facts.has_truth:
            yield "# The recording has no truth.json: the report shows what attackers claim,"
            yield "# beside a guess, and can check nothing. See docs/transcript-format.md."
            yield ""
        yield "# The seed of the attackers' random draws."
    yield "seeds = [0]"


def _data(facts: PlanFacts) -> Iterator[str]:
    yield "[data]"
    if isinstance(facts.source, NoExamples):
        yield "# No examples were given: the attacker holds none, and most attacks need some."
        yield "# Give labelled examples of the same kind that no client holds, such as public"
        yield "# ones or those set aside for tests: overheard init --data FILE --label COLUMN"
    elif facts.recording is not None:
        yield "# Labelled examples that the attacker holds. None may be a client's: take public"
        yield "# ones, or those set aside for tests."
    elif facts.source.name == "digits":
        yield "# 1,797 handwritten digits that come along. Yours: overheard init --data FILE"
    if not facts.is_shape_known:
        yield "# The recording does not state the shape of an input. This one is a guess, which"
        yield "# the network accepts if it is known: correct it if it is wrong."
    for note in facts.data_notes:
        yield from map(_comment, wrap(escape_unprintable(note), COMMENT_WIDTH))
    yield f"source = {plan_value(facts.source)}"
    if facts.recording is None and facts.sizes is not None:
        if facts.has_users:
            yield "# Each client is one user of the data."
        elif not facts.has_classes:
            yield "# Clients hold examples at random."
        else:
            yield "# Each client has other label shares; a smaller alpha = more different."
        yield f"split = {facts.split}"
        yield f"clients = {facts.clients}"
        yield "# Examples of a client: the smallest and the largest number."
        yield f"examples = {toml_value(facts.sizes)}"
    if facts.auxiliary_per_class is not None:
        each = ", of each class" if facts.has_classes else ""
        yield f"# How many of the examples the attacker holds{each}."
        key = "auxiliary_per_class" if facts.has_classes else "auxiliary"
        yield f"{key} = {facts.auxiliary_per_class}"
    if facts.candidates is not None:
        yield "# Records whose membership is asked: of each client, and of nobody."
        members, outsiders = facts.candidates
        yield f"candidates = {{ members = {members}, outsiders = {outsiders} }}"


def _training(facts: PlanFacts) -> Iterator[str]:
    yield "[training]"
    if facts.is_model_known:
        yield _comment(f"The network: {facts.model_origin}.")
        if facts.app is not None:
            yield "# It is imported from the folder of the app: call overheard there, or put"
            yield "# that folder on PYTHONPATH."
    else:
        yield "# Only the recorded tensors are known, so attacks that need the network do not"
        yield "# run. Give its class: overheard init --model package.module:Class"
    for reference, difference in facts.networks.items():
        yield _comment(f"{reference} is not taken: {difference}.")
    if facts.proposal is not None:
        yield "# The recording names this network. It is code, which an audit would run. If it"
        yield '# is yours, put its line in place of the next one, and "model" into knows below.'
        yield _comment(f"model = {plan_value(Own(facts.proposal))}")
    yield f"model = {plan_value(facts.model)}"
    yield "rounds = " + str(facts.rounds)
    yield from _recipe(facts)
    yield from _algorithm(facts)


def _recipe(facts: PlanFacts) -> Iterator[str]:
    training = facts.training
    if facts.is_recipe_known:
        yield "# How clients train."
    else:
        yield "# How clients train is not known in full, so no attacker knows it. If you know"
        yield '# it, correct the placeholders and add "recipe" to knows below.'
    for doubt in training.doubts:
        yield _comment(f"{doubt}.")
    yield _sourced(facts, "rate", toml_value(training.number("rate", ASSUMED["rate"])))
    for key in ("epochs", "batch"):
        yield _sourced(facts, key, str(int(training.number(key, ASSUMED[key]))))
    if facts.recording is not None or "optimizer" in training.settings:
        yield _sourced(facts, "optimizer", toml_text(training.optimizer))
    for key in ("momentum", "weight_decay", "label_smoothing"):
        if training.number(key, 0):
            yield _sourced(facts, key, toml_value(training.number(key, 0)))
    if facts.loss != "cross_entropy":
        yield f"loss = {toml_text(facts.loss)}"


def _sourced(facts: PlanFacts, key: str, value: str) -> str:
    """Return the line of a setting with its source in a comment."""
    found = facts.training.settings.get(key)
    if found is not None:
        return f"{key} = {value}  {_comment(found.source)}"
    is_assumed = facts.recording is not None or facts.training.settings
    return f"{key} = {value}  # a placeholder" if is_assumed else f"{key} = {value}"


def _algorithm(facts: PlanFacts) -> Iterator[str]:
    if facts.at_home:
        yield from map(_comment, wrap(escape_unprintable(f"{facts.at_home}."), COMMENT_WIDTH))
        yield f"algorithm = {plan_value(facts.algorithm)}"
    elif facts.algorithm is not None:
        yield "# The algorithm that the recording states."
        yield f"algorithm = {plan_value(facts.algorithm)}"
    elif facts.recording is not None:
        yield "# The recording does not state the algorithm, so it is taken for FedAvg. If it"
        yield "# is another one, name it: `overheard list algorithms` prints all."


def _arms(facts: PlanFacts) -> Iterator[str]:
    if facts.recording is None:
        yield "# Arms are variants of the federation, to compare defenses."
        yield "# An arm without defenses is always added."
        yield "[[arms]]"
        yield 'name = "local DP"'
        yield 'defenses = [{ kind = "local_dp", clip = 1.0, noise_multiplier = 0.2 }]'
        return
    for settings in facts.unparsed_defenses:
        yield _comment(f"The recording states the defense {settings}.")
    if facts.unparsed_defenses:
        yield "# No attacker of this plan adapts to it."
    if facts.defenses:
        yield "# The defenses that the recording states."
        yield "[[arms]]"
        yield 'name = "as recorded"'
        yield f"defenses = [{', '.join(map(plan_value, facts.defenses))}]"
    else:
        yield "# A recording is one run: other arms would not be run."
        yield "[[arms]]"
        yield 'name = "no defense"'


def _threats(facts: PlanFacts) -> Iterator[str]:
    for number, threat in enumerate(facts.threats):
        if number:
            yield ""
        if threat.virtual is not None:
            yield "# This attack trains clients of its own. More of them: better, slower."
        yield "[[threats]]"
        yield f"observers = [{toml_text(facts.observer)}]"
        attacks = ", ".join(
            one.replace("'", '"') if "'" in one else toml_text(one) for one in threat.attacks
        )
        yield f"attacks = [{attacks}]"
        if facts.is_global_only:
            yield "# Only global models were recorded. The change from one to the next is the"
            yield "# mean update of all clients that took part, if the server just adds it. A"
            yield "# client, or one that joins in round 0 as here, reads as much: so the claims"
            yield "# are about all of them."
            yield 'about = "cohort"'
        elif facts.is_about_cohort:
            yield "# No update of a single client can be read, so the claims are about all."
            yield 'about = "cohort"'
        elif threat.is_about_cohort:
            yield "# The list says which records are members, but not of which client."
            yield 'about = "cohort"'
        if not number:
            yield "# What the attacker knows. Attacks that need more are refused."
        yield f"knows = {toml_value(_known_parts(facts))}"
        if threat.virtual is not None:
            yield f"virtual = {_virtual(facts, threat.virtual)}"
            yield "by_round = false"
    for name, what in facts.missing.items():
        yield _comment(f"Left out: {name} needs {what}.")


def _known_parts(facts: PlanFacts) -> list[str]:
    known = {
        "auxiliary": not isinstance(facts.source, NoExamples),
        "model": facts.is_model_known,
        "recipe": facts.is_recipe_known,
        "defenses": bool(facts.defenses),
    }
    return [part for part, is_known in known.items() if is_known]


def _virtual(facts: PlanFacts, clients: int) -> str:
    if facts.is_recipe_known:
        return toml_value({"clients": clients})
    return toml_value({"clients": clients, "recipes": list(_candidate_recipes(facts))})


def _candidate_recipes(facts: PlanFacts) -> Iterator[dict[str, object]]:
    """Yield the recipes that an attacker tries: what is known stays, the rest is varied."""
    training = facts.training
    is_rate_known = "rate" in training.settings
    rates = (training.number("rate", 0),) if is_rate_known else CANDIDATE_RATES
    is_open = is_rate_known and "optimizer" not in training.settings
    for optimizer in CANDIDATE_OPTIMIZERS if is_open else (training.optimizer,):
        for rate in rates:
            known: dict[str, object] = {
                "rate": rate,
                "epochs": int(training.number("epochs", 1)),
                "batch": int(training.number("batch", 32)),
                "optimizer": optimizer,
                "momentum": training.number("momentum", 0),
                "weight_decay": training.number("weight_decay", 0),
                "label_smoothing": training.number("label_smoothing", 0),
                "loss": facts.loss,
            }
            unsaid = {"optimizer": "sgd", "loss": "cross_entropy"}
            yield {
                key: value for key, value in known.items() if value and unsaid.get(key) != value
            }
