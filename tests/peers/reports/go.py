"""Says what of `go test -json` has passed, and shows what has not. Arguments: that, and the table of names.

A test that has no row in the table, and no reason for having none, is a failure, too.
"""

import json
import re
import sys

outcomes, said = {}, {}
for line in open(sys.argv[1]):
    event = json.loads(line)
    test = event.get("Test")
    if event["Action"] == "output":
        said.setdefault(test, []).append(event["Output"])
    elif event["Action"] in ("pass", "fail", "skip"):
        # With `-count` there are several: one failure is enough.
        outcomes[test] = "fail" if outcomes.get(test) == "fail" else event["Action"]
package = outcomes.pop(None, "fail")
tests = {test: how for test, how in outcomes.items() if "/" not in test}
for test, how in sorted(tests.items()):
    if how != "pass":
        print(f"--- {how}: {test}\n", *said.get(test, []), sep="", flush=True)
if package == "fail":
    print(*said.get(None, []), sep="")
known = set(re.findall(r"\w+", open(sys.argv[2]).read()))
unknown = [it for it in tests if re.sub("^Test(Integration_)?", "", it) not in known]
if unknown:
    print("not in", sys.argv[2] + ":", *unknown)
count = {how: list(tests.values()).count(how) for how in ("pass", "fail", "skip")}
print(f"{count['pass']} passed, {count['fail']} failed, {count['skip']} skipped")
sys.exit(package != "pass" or not count["pass"] or bool(unknown))
