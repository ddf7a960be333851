"""Adds up reports in JUnit's form. Arguments: files."""

import sys
import xml.etree.ElementTree as xml

count = dict.fromkeys(("passed", "failed", "skipped"), 0)
for path in sys.argv[1:]:
    for case in xml.parse(path).getroot().iter("testcase"):
        broken = case.find("failure") is not None or case.find("error") is not None
        how = "failed" if broken else "skipped" if case.find("skipped") is not None else "passed"
        count[how] += 1
        if how != "passed":
            print(how, case.get("classname") + "." + case.get("name"))
print(", ".join(f"{number} {how}" for how, number in count.items()))
sys.exit(count["failed"] > 0 or not count["passed"])
