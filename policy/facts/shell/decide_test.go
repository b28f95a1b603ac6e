package shell_test

import (
	"strings"
	"testing"
)

// TestDecided: a condition that rests on constants of the text leaves one way,
// and what is a guess at the machine, or differs from shell to shell, both.
func TestDecided(t *testing.T) {
	t.Parallel()
	const choose = `then c=echo; else c="rm -rf /"; fi; $c x`
	only := func(cond string) testCase {
		return testCase{name: cond, src: "if " + cond + "; " + choose, want: []string{"cmd echo x"}, not: []string{"cmd rm -rf / x"}}
	}
	both := func(cond string) testCase {
		return testCase{name: cond, src: strings.Replace(cond, "IF", "if", 1) + "; " + choose, want: []string{"cmd rm -rf / x"}}
	}
	runCases(t, []testCase{
		only(`[ x = x ]`), only(`test "$(printf %s a)" = a`), only("(test \"x`printf %s b`\" = xb)"),
		only(`[ -n a ]`), only(`[ -z "" ]`), only(`true`),
		both(`IF [ "$TERM" = xterm ]`), both(`t=$TERM; IF [ "$t" = xterm ]`), both(`IF [ "$(uname)" = Linux ]`),
		both(`IF [[ a = a ]]`), both(`IF [ "$(echo {a,b})" = "a b" ]`), both(`IF [ ~ = ~ ]`), both(`IF [ "$1" = "$1" ]`),
		both(`a=x; read a; IF [ $a = x ]`), both(`a=x; trap "a=y" DEBUG; IF [ $a = x ]`), both(`a=x; . ./lib.sh; IF [ $a = x ]`),
		both(`a=x; eval "$1"; IF [ $a = x ]`), both(`alias test=false; IF test a = a`), both(`test() { return 1; }; IF test a = a`),
		both(`a=x; [ -e q ] && a=y; IF [ $a = x ]`), both(`IF [ "$(pwd)" = /workspace ]`), both(`IF [ $'a' = a ]`), both(`IF [ $((1)) = 1 ]`),
	})
}
