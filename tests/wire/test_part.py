"""Parts of a pattern as figures, and what becomes of these where they are put together."""

from mcprelay.wire.part import MOST, Part, Sequence, either

CHAR = Part(100, 100, 100, 1, 1)


def read(*parts):
    sequence = Sequence()
    for part in parts:
        sequence.add(part)
    return sequence.whole()


def test_parts_of_one_length_are_at_work_one_after_the_other():
    assert read(CHAR, CHAR, CHAR) == Part(300, 300, 100, 3, 3)
    assert CHAR.times(9, 9) == Part(900, 900, 100, 9, 9)


def test_behind_a_part_whose_length_is_open_more_are_at_work_at_once():
    # two characters or four, so the next part begins at three places
    open_part = CHAR.times(2, 4)
    assert (open_part.least, open_part.most, open_part.spread) == (2, 4, 2)
    assert read(open_part, CHAR.times(50, 50)).single == 100 + 3 * 100
    assert read(CHAR.looped(10, least=1), CHAR.times(50, 50)).single == 110 + 50 * 100


def test_a_part_that_ends_what_is_repeated_begins_at_one_place():
    sequence = Sequence()
    sequence.add(CHAR.looped(10, least=0))
    sequence.add_end(CHAR)
    assert sequence.spread == 0
    # and where what is repeated began at many, it begins at many
    sequence.add(CHAR.left_out(10))
    sequence.add(CHAR.looped(10, least=0))
    sequence.add_end(CHAR)
    assert sequence.spread == MOST


def test_after_the_start_of_the_text_a_part_begins_at_one_place():
    sequence = Sequence()
    sequence.add(CHAR)
    sequence.start()
    sequence.add(CHAR.times(9, 9))
    assert sequence.whole() == Part(1_000, 200, 200, 10, 10)


def test_one_of_several_parts_may_end_where_any_of_them_does():
    assert either([CHAR]) == CHAR
    assert either([CHAR, CHAR.times(3, 3)]) == Part(400, 400, 200, 1, 3, 2)
    assert either([CHAR, Part(100, 100, 100, 1, MOST)]).spread == MOST


def test_figures_stop_growing():
    part = CHAR
    for _ in range(9):
        part = part.times(10**9, None)
    assert max(part.size, part.loose, part.single, part.least, part.most, part.spread) == MOST
