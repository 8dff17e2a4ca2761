from overheard_studies.flip.attribute_tests import BinaryTask, Quadruple


def test_an_attack_learns_from_the_tasks_of_one_class_and_is_tested_on_another() -> None:
    one = Quadruple(("horse", "frog"), ("automobile", "cat"))
    assert [task.key for task in one.training_tasks] == ["horse-automobile", "horse-cat"]
    assert [task.key for task in one.test_tasks] == ["frog-automobile", "frog-cat"]
    assert one.tasks == (*one.training_tasks, *one.test_tasks)


def test_label_1_is_the_primary_class() -> None:
    assert BinaryTask("horse", "cat").classes[1] == "horse"
