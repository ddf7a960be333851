"""Adds up reports in JUnit's form. Arguments: a table of names, if every class of tests has a row in it; the reports.

A test that has failed and passed when it was repeated has passed, and is listed.
"""

import re
import sys
import xml.etree.ElementTree as xml

tables = [path for path in sys.argv[1:] if path.endswith(".md")]
count, classes = dict.fromkeys(("passed", "failed", "skipped"), 0), set()
for path in sys.argv[1 + len(tables) :]:
    for case in xml.parse(path).getroot().iter("testcase"):
        found = {child.tag for child in case}
        how = "failed" if found & {"failure", "error"} else "skipped" if "skipped" in found else "passed"
        count[how] += 1
        classes.add(case.get("classname").rsplit(".", 1)[-1])
        if how != "passed" or found & {"flakyFailure", "flakyError"}:
            print(how if how != "passed" else "repeated", case.get("classname") + "." + case.get("name"))
unknown = []
for table in tables:
    unknown = sorted(classes - set(re.findall(r"\w+", open(table).read())))
    if unknown:
        print("not in", table + ":", *unknown)
print(", ".join(f"{number} {how}" for how, number in count.items()))
sys.exit(count["failed"] > 0 or not count["passed"] or bool(unknown))
