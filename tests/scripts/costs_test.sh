#!/usr/bin/env bash
# scripts/costs adds up what a run of scripts/test left: stages, compiling by target, testing by program with its claims.
set -euo pipefail
costs=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
record=$folder/last-run
mkdir "$record"

! "$costs" "$record" 2>"$folder/told" || { echo "a run that is not there has costs"; exit 1; }
grep -q "no run of scripts/test" "$folder/told"

cat >"$record/times" <<END
1000000000 setup
3000000000 compiling
63000000000 testing
93000000000 end
END
# Begin and end in ms, the output's time, the output. The first was compiled in an earlier run; two of one command count once.
printf '# ninja log v5\n' >"$folder/.ninja_log"
printf '0\t9000\t2000000000\tplugins/a/CMakeFiles/a-tests.dir/old.o\t1\n' >>"$folder/.ninja_log"
printf '0\t4000\t7000000000\tplugins/a/CMakeFiles/a-tests.dir/one.o\t1\n' >>"$folder/.ninja_log"
printf '100\t2600\t8000000000\tplugins/a/CMakeFiles/a-tests.dir/two.o\t2\n' >>"$folder/.ninja_log"
printf '5000\t5500\t9000000000\tlib/a.so\t3\n' >>"$folder/.ninja_log"
printf '5000\t5500\t9000000000\tlib/a.so.0\t3\n' >>"$folder/.ninja_log"
cat >"$record/tests.xml" <<END
<testsuite name="all" tests="3">
  <testcase name="a-tests" classname="a-tests" time="7.25" status="run">
    <system-out>[==========] 41 tests from 3 test suites ran. (7000 ms total)</system-out>
  </testcase>
  <testcase name="b-contract" classname="b-contract" time="2" status="run">
    <system-out>b.so: 120 claims hold</system-out>
  </testcase>
  <testcase name="readme" classname="readme" time="11.5" status="run"><system-out>done</system-out></testcase>
</testsuite>
END
"$costs" "$record" >"$folder/printed"
diff - "$folder/printed" <<END
setup            2 s
compiling       60 s
testing         30 s

compiling and linking, by target (s)
     6.5    2  a-tests
     0.5    1  (links and generated files)
     7.0       in all

testing, by program (s, claims that were tested)
    11.5      0  readme
     7.2     41  a-tests
     2.0    120  b-contract
    20.8    161  in all
END
