from overheard.papers.flip.quadruple import BinaryTask, Quadruple


def test_an_attack_learns_from_the_tasks_of_one_class_and_is_tested_on_another() -> None:
    one = Quadruple(("horse", "frog"), ("automobile", "cat"))
    assert [task.key for task in one.learned] == ["horse-automobile", "horse-cat"]
    assert [task.key for task in one.tested] == ["frog-automobile", "frog-cat"]
    assert one.tasks == (*one.learned, *one.tested)


def test_label_1_is_the_primary_class() -> None:
    assert BinaryTask("horse", "cat").classes[1] == "horse"
