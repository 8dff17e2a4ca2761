from overheard.plans.plan import UNDEFENDED
from overheard_studies.whispers.setting import (
    METHODS,
    MNIST,
    WhispersBenchmark,
    build_finding_filter,
    build_noise_arm,
    build_plan,
    dirichlet_scenarios,
)


def test_virtual_clients_are_made_like_the_real_ones(tiny: WhispersBenchmark) -> None:
    scenario = dirichlet_scenarios(tiny)[0]
    one = build_plan(scenario, tiny.full, quick=False)
    virtual = one.threats[0].virtual
    assert virtual.splits == (scenario.split,) == (one.data.split,)
    assert virtual.examples == one.data.sizes == (60, 100)


def test_the_attacker_knows_the_defenses_only_if_there_are_any(tiny: WhispersBenchmark) -> None:
    scenario = dirichlet_scenarios(tiny)[0]
    without_noise = build_plan(scenario, tiny.full, quick=False)
    with_noise = build_plan(scenario, tiny.full, quick=False, arms=(build_noise_arm(1.0),))
    assert "defenses" not in without_noise.threats[0].knows
    assert "defenses" in with_noise.threats[0].knows


def test_only_a_quick_run_reduces_attacks() -> None:
    full = build_plan(dirichlet_scenarios(MNIST)[0], MNIST.full, quick=False).threats[0].attacks
    quick = (
        build_plan(dirichlet_scenarios(MNIST)[0], MNIST.reduced, quick=True).threats[0].attacks
    )
    assert full == tuple(one.attack for one in METHODS)
    assert [one == other for one, other in zip(full, quick, strict=True)] == [
        True, True, False, False, False,
    ]  # fmt: skip


def test_findings_are_selected_by_the_attacks_name_in_the_report(
    tiny: WhispersBenchmark,
) -> None:
    one = build_plan(dirichlet_scenarios(tiny)[0], tiny.reduced, quick=True)
    finding_filter = build_finding_filter(one, 3, UNDEFENDED)
    assert finding_filter.attack.startswith(
        "whispers(size='doubling'), with 32 virtual clients"
    )
    assert finding_filter.rounds == (0, 1)
