package testloop

import "testing"

func TestComparisons(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		how       Comparison
		want, got string
		text      bool
		json      bool
	}{
		{CompareExact, "1\n", "1\n", true, true},
		{CompareExact, "1\n", "1", false, true},
		{CompareTrimmed, "a b \r\n\n", "a b\n", true, false},
		{CompareTrimmed, "a b", "a  b", false, false},
		{CompareTrimmed, "\na", "a", false, false},
		{CompareFloat, "1.0 x 3e9", "1.0000001  x\n3000000000", true, false},
		{CompareFloat, "1.0", "1.1", false, false},
		{CompareFloat, "nan inf", "nan inf", true, false},
		{CompareFloat, "1", "nan", false, false},
		{CompareUnordered, "a\nb\nb\n", "b\na\nb", true, false},
		{CompareUnordered, "a\nb\nb\n", "b\na\na", false, false},
		{CompareUnordered, "[1, [2, 3]]", "[[2, 3], 1.0]", false, true},
		{CompareUnordered, "[1, [2, 3]]", "[[3, 2], 1]", false, false},
		{CompareUnordered, "[1, 1, 2]", "[1, 2, 2]", false, false},
		{CompareExact, `{"a": 1, "b": null}`, `{"b": null, "a": 1e0}`, false, true},
		{CompareExact, `{"a": 1}`, `{"a": 1, "b": null}`, false, false},
		{CompareExact, "0.1", "0.10000001", false, false},
		{CompareFloat, "[0.1]", "[0.10000001]", false, true},
		{CompareExact, "9007199254740993", "9007199254740992", false, false},
		{CompareExact, "1e999999999", "1e999999998", false, false},
		{CompareExact, "true", "1", false, false},
		{CompareExact, `"x"`, "NaN", false, false},
	} {
		if got := sameText(tt.how, 1e-6, tt.want, tt.got); got != tt.text {
			t.Errorf("%s texts %q %q: %v", tt.how, tt.want, tt.got, got)
		}
		if got := sameJSON(tt.how, 1e-6, []byte(tt.want), []byte(tt.got)); got != tt.json {
			t.Errorf("%s values %q %q: %v", tt.how, tt.want, tt.got, got)
		}
	}
}
