"""Adds up what Rust's test runner says. Arguments: that, and the table of names, of which every test has a row."""

import re
import sys

text = open(sys.argv[1]).read()
# What tests print may stand in the middle of such a line; the last line is whole.
tests = re.findall(r"^test (test_\w+)", text, re.M)
known = set(re.findall(r"\w+", open(sys.argv[2]).read()))
unknown = sorted(set(tests) - known)
if unknown:
    print("not in", sys.argv[2] + ":", *unknown)
counts = re.findall(r"^test result: .*?(\d+) passed; (\d+) failed; (\d+) ignored", text, re.M)
passed, failed, ignored = map(int, counts[0]) if counts else (0, 0, 0)
print(f"{passed} passed, {failed} failed, {ignored} skipped")
sys.exit(failed > 0 or not passed or bool(unknown))
