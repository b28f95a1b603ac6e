package shell_test

import "testing"

// TestManyTurns tells loops of many turns that make files, or leave programs
// running, from the rest.
func TestManyTurns(t *testing.T) {
	t.Parallel()
	runCases(t, []testCase{
		{name: "files of seq", src: `for i in $(seq 1 50000); do touch f$i; done`, want: []string{"struct loop_write"}},
		{name: "fewer files", src: `for i in $(seq 1 49999); do touch f$i; done`, not: []string{"struct"}},
		{name: "files of a counter", src: `for ((i=0;i<60000;i++)); do : > f$i; done`, want: []string{"struct loop_write"}},
		{name: "one file", src: `for ((i=0;i<60000;i++)); do echo $i >> log; done`, not: []string{"struct loop_write"}},
		{name: "output of the loop", src: `for i in $(seq 60000); do echo $i; done > log`, not: []string{"struct"}},
		{name: "programs", src: `for i in $(seq 1000); do sleep 9 & done`, want: []string{"struct resource_burn"}},
		{name: "fewer programs", src: `for i in $(seq 999); do sleep 9 & done`, not: []string{"struct resource_burn"}},
		{name: "a number that is not known", src: `for i in $(seq 1 $N); do touch f$i; done`, not: []string{"struct"}},
	})
}
