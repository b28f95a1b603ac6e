package python

import (
	"slices"

	"github.com/caisson-dev/caisson/policy/facts"
)

// widest is one value for all items of a loop that is not unrolled.
func widest(items []*val, over *val) *val {
	if len(items) == 0 {
		return derived(over)
	}
	v := items[0]
	for _, item := range items[1:min(len(items), 64)] {
		if v.open && len(v.more) >= facts.MaxAlts-1 && item.kind == v.kind && item.isConst() && len(item.from) == 0 {
			continue // there is no room for another
		}
		v = join(v, item)
	}
	if len(items) > 64 {
		v = join(v, derived(over))
	}
	return v
}

// allOf is widest for items that are all there are: many texts are kept one by
// one beside it.
func allOf(items []*val, over *val) *val {
	texts := constantTexts(items)
	if len(texts) == 0 {
		return widest(items, over)
	}
	v := choice(kStr, texts, false, nil)
	if v.open {
		v.x = &extra{every: texts}
	}
	return v
}

// maxEvery bounds the texts that are kept beside the alternatives.
const maxEvery = 256

// constantTexts are the texts that items are, nil where one is something else.
func constantTexts(items []*val) []string {
	if len(items) > maxEvery {
		return nil
	}
	out := make([]string, len(items))
	for i, item := range items {
		s, ok := item.oneText()
		if !ok || item.kind != kStr || len(item.from) > 0 {
			return nil
		}
		out[i] = s
	}
	return out
}

// assignEach binds the targets of a loop to what stands for all its items; of
// rows, each target to what stands for its column.
func (it *interp) assignEach(left *node, items []*val, over *val, s *scope) {
	targets, columns := columnsOf(left, items)
	if targets == nil {
		it.assign(left, allOf(items, over), s)
	}
	for i, target := range targets {
		it.assign(target, allOf(columns[i], over), s)
	}
}

// columnsOf are the targets of a loop over rows, and what each of them gets; nil
// where these do not fit.
func columnsOf(left *node, items []*val) (targets []*node, columns [][]*val) {
	if left.kind != "pattern_list" && left.kind != "tuple_pattern" || len(items) == 0 {
		return nil, nil
	}
	splat := false
	left.each(func(c *node) {
		targets = append(targets, c)
		splat = splat || c.kind == "list_splat_pattern" || c.kind == "list_splat"
	})
	columns = make([][]*val, len(targets))
	for _, row := range items {
		if splat || !row.isSeq() || row.open || len(row.x.items) != len(targets) {
			return nil, nil
		}
		for i, item := range row.x.items {
			columns[i] = append(columns[i], item.with(row.from))
		}
	}
	return targets, columns
}

// gains adds items at a place that is not known, and something for all those of
// more, where these are not known: what goes through the list meets them too.
func (v *val) gains(items []*val, more *val) {
	if more != nil && !more.isSeq() && more.kind != kDict {
		items = append(slices.Clip(items), partOf(more))
	}
	if len(v.x.items)+len(items) <= maxGained {
		v.x.items = append(slices.Clip(v.x.items), items...)
	}
	v.open = true
}

// maxGained bounds the items of such a list.
const maxGained = 4096
