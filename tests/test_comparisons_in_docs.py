"""Sentences that say "best", "always" or "nearly" of a table hold in the table that they name.

Each such sentence of a page with measured figures is in `COMPARISONS`, with its table and what
must hold there, or in `OTHERS`. All figures are those of the page: none is written here.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from statistics import fmean

import pytest

ROOT = Path(__file__).parent.parent

WORDS = re.compile(
    r"(?<!at )\b(always|best|closest|every row|all rows|for every|hardest|highest|in all audits"
    r"|least|lowest|most|nearly|never|none of those|strongest|weakest|worst)\b",
    re.IGNORECASE,
)
"""The words of a comparison with all others, but in "at most" and its like."""

NEARLY = 0.9
"""The share that "nearly all" means, or more."""

ENOUGH_FIGURES = 6
"""Cells of tables that begin with a decimal, of a page that has measured figures."""

FIGURE = re.compile(r"[+-]?\d*\.?\d+")
DECIMAL = re.compile(r"(?<![\d.])\d*\.\d+")


@dataclass(frozen=True)
class Table:
    """A table of a page, by its rows and the names of its columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def texts(self, column: str) -> list[str]:
        """Return the cells of a column, named by its whole title."""
        place = self.columns.index(column)
        return [row[place] for row in self.rows]

    def figures(self, column: str) -> list[float]:
        """Return the first number of each cell of a column; NaN where there is none."""
        return [first_figure(cell) for cell in self.texts(column)]

    def by_name(self, column: str) -> dict[str, float]:
        """Return the figures of a column by the text of the first cell."""
        return dict(zip(self.texts(self.columns[0]), self.figures(column), strict=True))

    def of(self, pattern: str) -> "Table":
        """Return the rows whose first cell matches."""
        kept = tuple(row for row in self.rows if re.search(pattern, row[0]))
        assert kept, pattern
        return Table(self.columns, kept)


def first_figure(cell: str) -> float:
    found = FIGURE.search(cell.replace(",", ""))
    return float(found[0]) if found else float("nan")


def decimals(sentence: str) -> list[float]:
    """Return the numbers of a sentence that are written with a point."""
    return [float(one) for one in DECIMAL.findall(sentence)]


def table_after(page: str, place: str) -> Table:
    """Return the first table after a text that a page has once."""
    text = (ROOT / page).read_text()
    assert text.count(place) == 1, (page, place)
    lines = text[text.index(place) :].split("\n")
    start = next(number for number, line in enumerate(lines) if line.startswith("|"))
    rows = list[tuple[str, ...]]()
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append(tuple(cell.strip(" `*") for cell in line.strip().strip("|").split("|")))
    return Table(rows[0], tuple(rows[2:]))  # The second line only marks the columns.


def sentences_of(page: Path) -> Iterator[str]:
    """Yield the sentences of a page, each on one line; no code, heading or table."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    paragraph = list[str]()
    for line in [*text.splitlines(), ""]:
        item = re.match(r"\s*(?:[-*]|\d+\.) (.*)", line)
        if item or not line.strip() or line.startswith(("|", "#")):
            yield from _split(" ".join(paragraph))
            paragraph = [item[1]] if item else []
        else:
            paragraph.append(line.strip())


def _split(paragraph: str) -> Iterator[str]:
    """Split after full stops, question marks and colons; "**Title.** Text" in two."""
    for one in re.split(r"(?<=[.:!?])(?:\*\*)?\s+(?=[A-Z`*\"(])", paragraph):
        yield one.strip("* ")


def measured_pages() -> list[str]:
    """Return the pages that have tables of measured figures."""
    pages = (*ROOT.glob("docs/*.md"), *ROOT.glob("studies/*.md"), ROOT / "README.md")
    return sorted(
        page.relative_to(ROOT).as_posix()
        for page in pages
        if len(re.findall(r"\| \**[+-]?\d*\.\d+", page.read_text())) >= ENOUGH_FIGURES
    )


Holds = Callable[[Table, str], bool]
"""Whether a sentence holds in a table."""


@dataclass(frozen=True)
class Comparison:
    """A sentence, and the table of its page that it is about.

    Args:
        page: the page.
        sentence: the sentence, or its beginning.
        place: a text of the page; the table is the first one after it.
        holds: whether the sentence holds in the table.

    """

    page: str
    sentence: str
    place: str
    holds: Holds


RIVALS = ("decaf", "bias_inversion", "ldia", "whispers")


def leads_nearly_everywhere(table: Table, sentence: str) -> bool:
    leads = [one == "amortised" for one in table.texts("leads")]
    is_ahead = [ratio < 1 for ratio in table.figures("ratio")]
    return leads == is_ahead and fmean(leads) >= NEARLY


def names_the_best_rival(table: Table, sentence: str) -> bool:
    """No rival of the table is better than the ratio says, but for what rounding hides."""
    names, ratios = table.texts("best rival"), table.figures("ratio")
    rivals = [table.figures(one) for one in RIVALS]
    for name, ratio, own, *others in zip(
        names, ratios, table.figures("amortised"), *rivals, strict=True
    ):
        best = min(others)
        rounded = 0.005 + 0.001 / best
        is_shown = name in RIVALS
        if is_shown and others[RIVALS.index(name)] != best:
            return False
        if ratio < own / best - rounded or (is_shown and ratio > own / best + rounded):
            return False
    return True


def is_the_best_that_trains_nothing(table: Table, sentence: str) -> bool:
    names = [one for one in table.texts("best rival") if one not in ("ldia", "whispers")]
    return 2 * names.count("bias_inversion") > len(names)


def is_hardest_after_five_epochs(table: Table, sentence: str) -> bool:
    by_recipe = [table.of(recipe).figures("amortised") for recipe in RECIPES]
    one_epoch, five_epochs, adam = by_recipe
    others = zip(one_epoch, adam, strict=True)
    return all(max(pair) < one for pair, one in zip(others, five_epochs, strict=True))


RECIPES = ("sgd-1", "sgd-5", "adam-1")


def has_these_mean_ratios(table: Table, sentence: str) -> bool:
    parts = (*RECIPES, "1000$", "20$")
    means = [round(fmean(table.of(part).figures("ratio")), 2) for part in parts]
    return means == decimals(sentence)


def notices_texts_least(table: Table, sentence: str) -> bool:
    """The two columns "doubted" are of clean and of distorted runs: the second counts."""
    column = table.columns.index("distorted: coverage") + 1
    noticed = {row[0]: int(row[column]) / int(row[1]) for row in table.rows}
    return set(sorted(noticed, key=noticed.__getitem__)[:2]) == {
        "100 a class (texts)",
        "AG News (texts)",
    }


def never_stops(table: Table, sentence: str) -> bool:
    stops = [cell for cell in table.of("^ldia").rows[0][1:] if cell != "not measured"]
    return bool(stops) and all(cell == "1,200: 1" for cell in stops)


def raises_every_auc(table: Table, sentence: str) -> bool:
    several = table.of(r"\b([2-9]|10) local epochs")
    alone = several.figures("gradients alone")
    both = [
        (one, trained)
        for one, trained in zip(alone, several.figures("gradient_membership"), strict=True)
        if not isnan(trained)
    ]
    return len(both) > 1 and all(one < trained for one, trained in both)


def is_above_a_guess(table: Table, sentence: str) -> bool:
    """FLiP's row follows that of FedAvg, which names the attack."""
    at = [number for number, row in enumerate(table.rows) if "FLiP" in row[1]]
    learned = [table.rows[one] for one in at if table.rows[one - 1][0] != "loss_membership"]
    lows = [first_figure(cell.partition("(")[2]) for row in learned for cell in row[2:4]]
    return bool(lows) and min(lows) > 0.5


def sends_all_layers(table: Table) -> Table:
    rows = tuple(row for row in table.rows if "at home" not in row[0])
    return Table(table.columns, rows)


def is_least_precise(table: Table, sentence: str) -> bool:
    errors = sends_all_layers(table).by_name("label shares, server, formula")
    return set(sorted(errors, key=errors.__getitem__)[-2:]) == {"FedAvgM", "FedYogi"}


def is_lowest(table: Table, sentence: str) -> bool:
    found = sends_all_layers(table).by_name("membership by losses")
    return set(sorted(found, key=found.__getitem__)[:2]) == {"FedAvgM", "FedYogi"}


def are_most_accurate(table: Table, sentence: str) -> bool:
    accuracy = sends_all_layers(table).by_name("accuracy")
    best = [name for name, one in accuracy.items() if one == max(accuracy.values())]
    return best == ["FedAvgM", "FedYogi", "FedAdagrad"]


def tell_a_shift_as_published(table: Table, sentence: str) -> bool:
    figures = table.of("cosine|loss").figures("published")
    return [round(min(figures), 2)] == decimals(sentence)


def is_ahead_on_any_scale(table: Table, sentence: str) -> bool:
    published, simulated = (table.figures(one) for one in ("published", "simulated scale"))
    return [simulated[0], max(*published[1:], *simulated[1:])] == decimals(sentence)


def covers_as_stated(table: Table, sentence: str) -> bool:
    several = [*table.figures("best of 4"), *table.figures("best of 12")]
    return [min(table.figures("one attack")), min(several)] == decimals(sentence)


def half_truths_leak(table: Table, sentence: str) -> bool:
    return set(table.of("^0.5").figures(LEAKS)) == {100.0}


def fifths_near_the_population_leak(table: Table, sentence: str) -> bool:
    near = [row[1] == "near the population" for row in table.of("^0.2").rows]
    leaks = [one == 100.0 for one in table.of("^0.2").figures(LEAKS)]
    return near == leaks


LEAKS = '"leaks", %'


def clipping_costs_nearly_all(table: Table, sentence: str) -> bool:
    (none,), (guess, *_) = table.of("^none").figures("accuracy"), decimals(sentence)
    clipped = table.of("^clip 1").figures("accuracy")
    return none - clipped[0] >= NEARLY * (none - guess) and clipped[-1] >= clipped[0]


def hides_at_the_least_cost(table: Table, sentence: str) -> bool:
    """It hides words if both attacks are refused, or find less than half of what they do."""
    at_home = table.of("at home").figures("accuracy")[0]
    (plain, *_), found = table.figures("combined_rows"), table.figures("combined_rows")
    costly = [
        accuracy
        for one, accuracy in zip(found, table.figures("accuracy"), strict=True)
        if one < plain / 2
    ]
    return bool(costly) and all(accuracy < at_home for accuracy in costly)


ONE_UPDATE = "reidentify_wccn`, one update"


def is_mostly_views(table: Table, sentence: str) -> bool:
    of = table.by_name("a random half")
    whole, rest = (of[ONE_UPDATE] - of[name] for name in ("MLP, as published", "MLP"))
    return rest < whole / 2


def names_rivals_and_leads(table: Table, sentence: str) -> bool:
    scores, rounded = table_after("studies/identity.md", EQUAL_VIEWS), 0.001
    for prior, rival, lead, _ in table.rows:
        figures = scores.by_name(prior)
        rivals = {k: v for k, v in figures.items() if not k.startswith(("reidentify", "meta"))}
        best = max(rivals, key=rivals.__getitem__)
        ahead = figures[ONE_UPDATE] - rivals[best]
        if best != rival or abs(ahead - first_figure(lead)) > rounded:
            return False
    return True


EQUAL_VIEWS = "The table shows the average precision. Brackets"


def is_closest_by_accuracies(table: Table, sentence: str) -> bool:
    errors = {k: v for k, v in table.by_name("mean L1").items() if "losses" not in k}
    return min(errors, key=errors.__getitem__) == "kernel regression"


def is_hardest_at_the_smallest_alpha(table: Table, sentence: str) -> bool:
    """Rows are in the order of alpha, three for each data set."""
    columns = [table.figures(name) for name in ("LSTM", "ridge", "kernel", "kernel, losses")]
    return all(max(one[at : at + 3]) == one[at] for one in columns for at in (0, 3))


ALGORITHMS = "same sender | average precision over pairs of updates, in percent"

KNOWN_PARTS = "where claims know a part of the truth, 1 run"

COMPARISONS = (
    Comparison(
        "docs/label-shares.md",
        "`amortised`, Overheard's own, is closest to the truth in nearly every row.",
        "### Round 5",
        leads_nearly_everywhere,
    ),
    Comparison(
        "docs/label-shares.md",
        "The tables name the best of *all* rivals in each row, and who leads.",
        "### Round 5",
        names_the_best_rival,
    ),
    Comparison(
        "docs/label-shares.md",
        "Best simple attack.",
        "### Round 5",
        is_the_best_that_trains_nothing,
    ),
    Comparison(
        "docs/label-shares.md", "Hardest case.", "### Round 5", is_hardest_after_five_epochs
    ),
    Comparison(
        "docs/label-shares.md",
        "Texts are where the check is weakest",
        "Coverage is that of the 90 % intervals, with a 95 % interval over runs",
        notices_texts_least,
    ),
    Comparison(
        "docs/label-shares.md", "`ldia` never stopped.", "### What stopping saves", never_stops
    ),
    Comparison(
        "docs/label-shares.md",
        "On average over the rows of a recipe, the ratio to the best rival is",
        "### Round 5",
        has_these_mean_ratios,
    ),
    Comparison(
        "docs/label-shares.md",
        "The ratio is to the best of all rivals, which was never `decaf`.",
        "### Other rounds, measured before",
        lambda table, _: not any("decaf" in one for one in table.texts("best rival")),
    ),
    Comparison(
        "docs/membership.md",
        "After several epochs two trainings on each record raise the AUC in every row",
        "The first table\nshows the AUC",
        raises_every_auc,
    ),
    Comparison(
        "docs/membership.md",
        "For every attack with shadow models, the intervals of accuracy and AUC are above",
        "The table shows the mean accuracy of five rounds",
        is_above_a_guess,
    ),
    Comparison(
        "docs/federated-algorithms.md",
        "Among algorithms that send all layers, the formula is least precise under FedAvgM and",
        ALGORITHMS,
        is_least_precise,
    ),
    Comparison(
        "docs/federated-algorithms.md",
        "Membership by losses is lowest under the same two.",
        ALGORITHMS,
        is_lowest,
    ),
    Comparison(
        "docs/federated-algorithms.md",
        "Their models, and those of FedAdagrad, are the most accurate.",
        ALGORITHMS,
        are_most_accurate,
    ),
    Comparison(
        "docs/shift.md",
        "At 70-30 all cosines and the validation loss tell a shift",
        "\n70-30:",
        tell_a_shift_as_published,
    ),
    Comparison(
        "docs/shift.md",
        "At 60-40 it is large: 0.97 against 0.86 for the best rival on any scale that an",
        "60-40:",
        is_ahead_on_any_scale,
    ),
    Comparison(
        "docs/statistics.md",
        "Intervals of normal figures cover in 93.8 % and more, of the best of several",
        "Coverage of 95 % intervals of normal figures",
        covers_as_stated,
    ),
    Comparison(
        "docs/statistics.md",
        "Where a claim is half truth, the verdict is",
        KNOWN_PARTS,
        half_truths_leak,
    ),
    Comparison(
        "docs/statistics.md",
        "Where a claim is one fifth truth, and the rest of it lies near the population",
        KNOWN_PARTS,
        fifths_near_the_population_leak,
    ),
    Comparison(
        "docs/words.md",
        "Clipping to 1 costs nearly all that training gains",
        "**News.**",
        clipping_costs_nearly_all,
    ),
    Comparison(
        "docs/words.md",
        "Among these, keeping the word vectors at home hides the words at the least cost.",
        "**News.**",
        hides_at_the_least_cost,
    ),
    Comparison(
        "studies/identity.md",
        "With a random half, most of the published MLP's distance is views.",
        EQUAL_VIEWS,
        is_mostly_views,
    ),
    Comparison(
        "studies/identity.md",
        "The second table shows the lead of `reidentify_wccn` over the best rival that reads",
        "The second table shows the lead",
        names_rivals_and_leads,
    ),
    Comparison(
        "studies/reproductions.md",
        "The kernel regression was the closest of all estimators tried",
        "**The floor.**",
        is_closest_by_accuracies,
    ),
    Comparison(
        "studies/reproductions.md",
        "None of those tried brings the LSTM",
        "**Leaks of setting.**",
        lambda table, sentence: min(table.figures("LSTM")) > decimals(sentence)[0],
    ),
    Comparison(
        "studies/reproductions.md",
        "Alpha 0.5** is hardest.",
        "1 and 2), and the kernel",
        is_hardest_at_the_smallest_alpha,
    ),
)

OTHERS = (
    "For observers of the global models: the change over *all rounds together*",
    "Of the best round, 20,000 such directions are drawn.",
    "An epoch has `batches` steps for every client",
    "Wrong shares* is the part of a client's data",
    "For a model that learns alone in batches of 32, an exchange has most",
    "Clipping alone takes most of the membership away",
    "Whether weights are least sensitive is undecided.",
    "In the paper null removal matters most",
    "A likely reason: the first step of Adadelta",
    "Four trainings with smaller rates",
    "The best by the sum differs by 0.11",
    "The best by the sum of the first eleven trainings",
    "The closest to Table III differs by 0.04",
    "A setting that fits all three has a sum of at most 0.3",
    "Of the settings that are the best of their bases",
    "The first layer tells most, against the paper",
    "But the average precision falls from 0.94",
    "The third round is not the best here",
    "Here round 1 is the best of the first five",
    "Behind LeakyReLU most other rows grow, too.",
    "With 10 clients it diverges less, in nearly all pairs of a run",
    "Weights are least sensitive: holds",
    "By the control it is undecided for every source",
    "An exchange alone has nearly the effect of the shift.",
    "The paper says that noise and `dp_fedavg` cost much utility",
    "A client that observes is none, nor is one that is never sampled.",
    "A lower bound for one record never counts on it.",
    "A table that is also the last layer (tied weights) moves in all rows.",
    "An adaptive attacker is not always stronger.",
    "An attacker with 200 images of each class infers B from nearly every client's samples.",
    "Best attack.",
    "Both sides spend nearly all their time in the same convolutions.",
    "Code that a recording names is never run",
    "Coverage of 95 % intervals of normal figures, the worst of all correlations",
    "Distribution matching** in the same rounds never changes labels and rates.",
    "Each round alone reveals nearly as much as the next (.609",
    "Everybody uses frequent words",
    "In every row the permutation control is within the range",
    "Canaries are exchangeable for every split.",
    "Student's, as for every other figure",
    "It measures how often a sample is most similar to the mean image of its own class.",
    "It never overwrites a plan",
    "Labels and rates never change",
    "Most algorithms have a setting",
    "Not met, but nearly.",
    "Not to find a leak is never told as",
    "On WISDM, taking the first half of each user's rows as prior examples removes most",
    "Over all rows of this earlier version the intervals of `amortised` contained 90.1 %",
    "That takes seven minutes of a core a seed, most of them to derive the models",
    "The best rival is the best of all ten, of which four are shown.",
    "The bound takes the attack that is best on one half of the records.",
    "The epsilon of DP-SGD for a record and that of a client are about different things",
    "The function must always return the same examples",
    "The p-value of the best attack is the share of the pairings",
    "The rest of a step is convolutions at 160 GFLOP a second, the most that a core gives.",
    "The second table shows the best attack of each kind",
    "The table shows how often an image is most similar to the mean image of its own class.",
    "The values are the best of rounds 1 to 5, over five seeds.",
    "Weight decay moves all rows.",
    "Where clients, users, senders or records are permuted",
    "`decaf` with its published bases",
    "`p_value` is that of the strongest attack, adjusted for the number of attacks; `gain`",
    "`ppa/top1`: the class that a client holds most of.",
    "label shares of single updates by closed forms; they are *most* accurate for small",
)
"""Beginnings of sentences with such words that compare no figures of a table."""


def the_sentence(comparison: Comparison) -> str:
    """Return the sentence as the page has it."""
    sentences = sentences_of(ROOT / comparison.page)
    found = [one for one in sentences if one.startswith(comparison.sentence)]
    assert len(found) == 1, f"{comparison.page} says not once: {comparison.sentence}"
    return found[0]


@pytest.mark.parametrize("comparison", COMPARISONS, ids=lambda one: one.sentence)
def test_a_comparison_holds_in_its_table(comparison: Comparison):
    table = table_after(comparison.page, comparison.place)
    assert comparison.holds(table, the_sentence(comparison))


def test_every_sentence_with_such_a_word_is_listed():
    listed = (*(one.sentence for one in COMPARISONS), *OTHERS)
    sentences = [one for page in measured_pages() for one in sentences_of(ROOT / page)]
    said = [one for one in sentences if WORDS.search(one)]
    assert [one for one in said if not one.startswith(listed)] == []
    assert [one for one in listed if not any(s.startswith(one) for s in sentences)] == []
