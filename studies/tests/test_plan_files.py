"""Plans from files: what an audit and a quick run change, and what they keep."""

from overheard_studies.plan_files import merge, read_panels


def test_tables_are_merged_but_plugins_and_lists_replaced() -> None:
    base = {"data": {"source": {"kind": "mnist", "shrink": 2}, "clients": 4}, "seeds": [0, 1]}
    changed = merge(base, {"data": {"source": {"kind": "adult"}}, "seeds": [3]})
    assert changed == {"data": {"source": {"kind": "adult"}, "clients": 4}, "seeds": [3]}
    assert merge(base, {"data": {"source": {"shrink": 1}}})["data"]["source"] == {
        "kind": "mnist", "shrink": 1,
    }  # fmt: skip


def test_a_quick_run_has_its_own_sizes_and_those_of_its_audit() -> None:
    mnist, cifar10 = read_panels("ppa", lambda one: ())
    assert (mnist.key, mnist.name) == ("mnist", "MNIST")
    full, quick = (mnist.plan(is_quick) for is_quick in (False, True))
    assert (full.data.sizes, quick.data.sizes) == ((4800, 4800), (480, 480))
    assert (full.training.rounds, quick.training.rounds) == (5, 2)
    assert cifar10.plan(True).data.sizes == (240, 240)
