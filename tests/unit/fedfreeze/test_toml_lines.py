import tomli

from fedfreeze.toml_lines import key_lines, line_of

DOCUMENT = '''# a comment with = and [brackets]
plain = 1
"quoted.key" = "x # no comment, ] and } are text"
text = """
[no-table]
no-key = 1 """"
literal = \'\'\'
[nor-this]\'\'\'
again = \'\'\'x\'\'\'
[table]
dotted . "key" = 1979-05-27 07:32:00
list = [ # with a comment
  {x = 1, y.z = 'a'},
  [1.5,
   2], ]

[[device]]
name = "a"

[device.ram]
size = 1

[[device]]
[[device.sensor]]
[[device.sensor]]
rate = 1

[late.child]
x = 1
[late]
y = 2
'''
LINES = key_lines(DOCUMENT)


def test_the_document_of_these_tests_is_valid_toml():
    assert tomli.loads(DOCUMENT)["device"][1]["sensor"][1] == {"rate": 1}


def test_plain_quoted_and_dotted_keys_have_the_line_they_are_written_on():
    assert LINES["plain",] == 2
    assert LINES["quoted.key",] == 3
    assert LINES["table", "dotted"] == LINES["table", "dotted", "key"] == 11


def test_a_multi_line_string_hides_what_looks_like_tables_and_keys():
    assert LINES["text",] == 4
    assert LINES["literal",] == 7
    assert LINES["again",] == 9
    assert LINES["table",] == 10
    assert ("no-table",) not in LINES
    assert ("nor-this",) not in LINES


def test_elements_of_arrays_and_inline_tables_have_lines_of_their_own():
    assert LINES["table", "list"] == 12
    assert LINES["table", "list", 0, "x"] == LINES["table", "list", 0, "y", "z"] == 13
    assert LINES["table", "list", 1] == LINES["table", "list", 1, 0] == 14
    assert LINES["table", "list", 1, 1] == 15


def test_arrays_of_tables_are_counted_at_every_depth():
    assert LINES["device", 0] == 17
    assert LINES["device", 0, "name"] == 18
    assert LINES["device", 0, "ram", "size"] == 21
    assert LINES["device", 1] == 23
    assert LINES["device", 1, "sensor", 0] == 24
    assert LINES["device", 1, "sensor", 1, "rate"] == 26


def test_the_header_of_a_table_wins_over_an_earlier_mention_of_it():
    assert LINES["late",] == 30
    assert LINES["late", "child"] == 28


def test_a_key_that_is_not_written_has_the_line_of_the_nearest_table_around_it():
    assert line_of(("device", 0, "ram", "absent", "deeper"), LINES) == 20
    assert line_of(("absent",), LINES) == 1


def test_windows_line_ends_count_once():
    assert key_lines("a = 1\r\n[b]\r\nc = 2\r\n")["b", "c"] == 3
