package facts

import (
	"strings"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
)

// foldsPlainly is what follows inject and reduce of Ruby where they call a block
// or an operator: they also call what a text names.
var foldsPlainly = lazyregexp.New(`^(\(\d+\))? *(\{|do\b)|^\((\d+, *)?:[-+*|&]\)`)

// onelinerWords are words by which a program only computes and prints, and what
// may stand behind each: a value behind those of expectTerm, whatever they are.
// Words that call what they are given by its name are none of them.
var onelinerWords = map[Lang]map[string]expect{
	"perl": wordList(
		`if unless while until and or not xor lt gt le ge eq ne cmp return print printf say push unshift join split grep map sort reverse keys values each
		scalar my our local defined exists delete else elsif for foreach length lc uc lcfirst ucfirst sprintf substr index rindex abs int sqrt sin cos exp log hex oct
		ord chr chomp chop die warn exit`,
		`last next time localtime gmtime undef shift pop STDIN STDOUT STDERR BEGIN END wantarray eof splice rand srand sum max min uniq first floor ceil strftime`),
	"ruby": wordList(
		`if unless while until and or not return puts print p pp printf else elsif then do end`,
		`in each map select reject sum min max count size length join split upcase downcase capitalize strip lstrip rstrip chomp chop chars lines
		each_with_index each_line sort reverse uniq first last take drop reduce inject flatten compact zip to_s to_i to_f to_a to_sym
		round floor ceil abs even odd times upto downto step gsub sub tr match scan include any all none nil true false
		RUBY_VERSION RUBY_PLATFORM RUBY_ENGINE RUBY_PATCHLEVEL STDIN read gets now strftime Time Math sqrt PI Integer Float String Array
		JSON parse generate pretty_generate keys values key format rjust ljust center succ ord chr hex rand`),
	"php": wordList(
		`echo print return if else elseif for foreach while as and or xor`,
		`printf sprintf strlen strtoupper strtolower ucfirst trim rtrim ltrim substr strpos str_replace str_repeat strrev implode explode count
		json_encode json_decode var_dump print_r in_array array_sum array_keys array_values array_merge range sort rsort max min abs round floor ceil
		sqrt pow intdiv number_format date time microtime md5 sha1 crc32 base64_encode phpversion extension_loaded memory_get_usage
		PHP_VERSION PHP_EOL PHP_OS PHP_OS_FAMILY PHP_INT_MAX PHP_INT_SIZE PHP_MAJOR_VERSION PHP_MINOR_VERSION true false null int float string array M_PI exit`),
	"lua": wordList(
		`if then else elseif and or not return for in do while end local`,
		`print string math table tostring tonumber ipairs pairs type format rep upper lower len gsub gmatch match find floor ceil sqrt pi max min
		abs random concat insert unpack sort _VERSION true false nil jit version`),
}

// wordList puts words together: those that a value follows, and the others.
func wordList(terms, others string) map[string]expect {
	out := map[string]expect{}
	for _, w := range strings.Fields(terms) {
		out[w] = expectTerm
	}
	for _, w := range strings.Fields(others) {
		out[w] = expectUnclear
	}
	return out
}
