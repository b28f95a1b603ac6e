package facts

import "testing"

func TestOneliner(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		lang Lang
		src  string
	}{
		{"perl", `print "if test \"x\$fast\" = xyes; then\n  rm -f \$CONFIG.bak\nfi\n" if /^\s*chmod\s+.*\+x/;`},
		{"perl", `s/old url/new url/g`},
		{"perl", `s{package (\w+)}{module $1}; s#/a/b#/c/d#; y/a-z/A-Z/;`},
		{"perl", `$in=0; while ( <> ) { $in = 1 if ($_=~ m/^if /); print $_ unless ($in); $in = 0 if ($_ =~ m/^endif/); }`},
		{"perl", `if (/^(\w+)\s+(\d+)/) { $c{$1} += $2 } END { print "$_ $c{$_}\n" for sort keys %c }`},
		{"perl", `s/(\d+)/$1+1/e; print join ",", @F[0,2]; print "x" x 20, $h->{File}[1] / 2;`},
		{"perl", `foreach my $n (sort { $h{$b} <=> $h{$a} } keys %h) { printf "%s %d\n", $n, $h{$n} }`},
		{"perl", `print $1 if m|http://([^/]+)/download| # a host`},
		{"ruby", `print RUBY_VERSION`},
		{"ruby", `puts [1,2,3].map { |x| x * 2 }.sum`},
		{"ruby", `puts "Process #{1 + 2} of File"`},
		{"ruby", `puts [1,2].inject(:+), [1,2].reduce(1, :+), [1].inject { |a, b| a + b }, [1].reduce(0) do |a, b| a + b end`},
		{"php", `echo PHP_VERSION, "\n";`},
		{"php", `$n = 3; echo "File: ", str_repeat('x', $n), PHP_EOL;`},
		{"lua", `print(_VERSION)`},
		{"lua", `for i = 1, 3 do print(i, "load") end`},
	} {
		if !computes(tt.lang, tt.src) {
			t.Errorf("%s %s: not plain", tt.lang, tt.src)
		}
	}
}

func TestOnelinerActs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		lang Lang
		src  string
	}{
		{"perl", "print `id`"}, {"perl", `system "id"`}, {"perl", `print "@{[ system 'id' ]}"`}, {"perl", `s/x/system("id")/e`},
		{"perl", `s/x/"sys"."tem"/ee`}, {"perl", `/(?{ system "id" })/`}, {"perl", `$a'b; system("id"); $c'd`}, {"perl", `time / 2; system("id") / 3`},
		{"perl", `&{"sys"."tem"}("id")`}, {"perl", `$f = "CORE::system"; $f->("id")`}, {"perl", `$h{x} = "f"; $h{x}("id")`}, {"perl", `print for $h{x}("id")`},
		{"perl", `*{"main::f"} = \&system`}, {"perl", `sub system { 1 } system("id")`}, {"perl", "=pod\n'\n=cut\nsystem('id')"}, {"perl", "print 1;\n=pod\n'\n=cut\nsystem(q(id)); '"},
		{"perl", `print <<'A'; system("id");` + "\nA\n"}, {"perl", `1x/"/; system("id"); "/`}, {"perl", `$1x/"/; system("id"); "/`}, {"perl", `print $ENV{HOME}, kill`},
		{"perl", "\"$+{`id`}\""}, {"perl", "\"$h{`id`}\""}, {"perl", "\"$h[system 1]\""}, {"perl", `open(F, "id|")`}, {"perl", `$x = q{'}; system(q{id}); $y = q{'}`},
		{"perl", `s{a} #{b}; system("id"); #{c}` + "\n{d}"}, {"perl", `$x = {} / 1; system("id") / 1`}, {"perl", `-s "x"; system("id")`}, {"perl", `do "x.pl"`},
		{"perl", `$s = $t ? /a/ : ?b?; unlink`}, {"perl", `$_ = "rm"; qx/$_/`}, {"perl", `print <*.c>, unlink`}, {"perl", `%'; system("id"); '`}, {"perl", `@ARGV = ("id|"); print while <>`},
		{"perl", `map { unlink } "a"`}, {"perl", `print {*STDOUT} unlink`}, {"perl", `shift // system(1)//1`}, {"perl", `require "x"`}, {"perl", `eval "1"`}, {"perl", `goto &{"x"}`},
		{"ruby", `p / system("id") /1`}, {"ruby", "[p, 1]; p /'/; system(:id); '/"}, {"ruby", `print "#{system 'id'}"`}, {"ruby", `send(:system, "id")`}, {"ruby", "x = 1; x `id`"}, {"ruby", `%x(id)`}, {"ruby", `puts "#{` + "`id`" + `}"`},
		{"ruby", `["", "system('id')"].inject("instance_eval")`}, {"ruby", `["", "1"].reduce(:"instance_eval")`}, {"ruby", `["", "1"].inject "instance_eval"`}, {"ruby", `["1"].inject("", "instance_eval")`},
		{"ruby", `["id"].each(&method(:system))`}, {"ruby", `File.read("x")`}, {"ruby", `puts [1].map(&:eval)`}, {"ruby", "puts <<A; system('id')\nA"}, {"ruby", `x = ?"; system("id"); y = ?"`},
		{"ruby", `puts x, 1 if false; x /'/ if false; system("id"); x /'/ if false`}, {"ruby", `[1].map { |x| x }; x /'/ if false; system("id"); x /'/ if false`},
		{"ruby", `x = 1; x ?'a : system("id") ; x ?'a : 1`}, {"ruby", `x = 1; x %'/; system("id"); '/`},
		{"php", `foreach (["system"] as $f) $f("id");`}, {"lua", `for k in x do k("id") load("x")() end`},
		{"php", `$f = "sys"."tem"; $f("id");`}, {"php", `("sys"."tem")("id");`}, {"php", `array_map("system", ["id"]);`}, {"php", `echo "{$f("id")}";`}, {"php", `echo 1 // "` + "\n; system('id'); // \""},
		{"php", `echo 1; ?> <?php system("id");`}, {"php", `usort($a, "system");`}, {"php", `echo $_SERVER["A"], unlink("x");`},
		{"lua", `x=[=["]=] ; os.execute('id') ; y="`}, {"lua", `os.execute("id")`}, {"lua", "print(1) -- \"\nos.execute('id') -- \""}, {"lua", `o = _G["os"]; o["exe".."cute"]("id")`}, {"lua", `load("x")()`},
		{"tcl", `puts 1`},
	} {
		if computes(tt.lang, tt.src) {
			t.Errorf("%s %s: plain", tt.lang, tt.src)
		}
	}
}
