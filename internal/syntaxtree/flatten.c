// The declarations below are the part of tree_sitter/api.h (ABI of 0.25) that
// this needs; the header itself is inside another Go module, where the compiler
// cannot reach it.
#define _POSIX_C_SOURCE 200112L
#include "flatten.h"
#include <stdbool.h>
#include <string.h>
#include <time.h>

typedef struct {
	uint32_t context[4];
	const void *id;
	const void *tree;
} TSNode;

typedef struct {
	const void *tree;
	const void *id;
	uint32_t context[3];
} TSTreeCursor;

typedef struct {
	uint32_t row, column;
} TSPoint;

typedef struct {
	void *payload;
	const char *(*read)(void *, uint32_t, TSPoint, uint32_t *);
	int encoding; // 0 is UTF-8
	void *decode;
} TSInput;

typedef struct {
	void *payload;
	uint32_t offset;
	bool has_error;
} TSParseState;

typedef struct {
	void *payload;
	bool (*progress)(TSParseState *);
} TSParseOptions;

extern void *ts_parser_new(void);
extern void ts_parser_delete(void *);
extern bool ts_parser_set_language(void *, const void *);
extern void *ts_parser_parse_with_options(void *, const void *, TSInput, TSParseOptions);
extern TSNode ts_tree_root_node(const void *);
extern uint32_t ts_node_descendant_count(TSNode);
extern uint32_t ts_node_child_count(TSNode);
extern uint16_t ts_node_symbol(TSNode);
extern uint32_t ts_node_end_byte(TSNode);
extern TSPoint ts_node_end_point(TSNode);
extern bool ts_node_is_named(TSNode);
extern bool ts_node_is_missing(TSNode);
extern TSTreeCursor ts_tree_cursor_new(TSNode);
extern TSNode ts_tree_cursor_current_node(const TSTreeCursor *);
extern uint16_t ts_tree_cursor_current_field_id(const TSTreeCursor *);
extern bool ts_tree_cursor_goto_parent(TSTreeCursor *);
extern bool ts_tree_cursor_goto_next_sibling(TSTreeCursor *);
extern bool ts_tree_cursor_goto_first_child(TSTreeCursor *);

// above is a node whose children are being written: its index, and how many are
// still to come.
typedef struct {
	uint32_t index, left;
} above;

// flatten writes the tree under root to out, at most max nodes, and returns how
// many it wrote. What it allocates is the arena's. The cursor is never asked for
// what is not there: it would look through all levels to find that out.
static uint32_t flatten(TSNode root, flat_node *out, uint32_t max) {
	TSTreeCursor c = ts_tree_cursor_new(root);
	uint32_t n = 0, depth = 0, room = 256;
	above *open = arena_alloc(room * sizeof *open);
	bool more = true;
	while (more && n < max) {
		TSNode x = ts_tree_cursor_current_node(&c);
		flat_node *f = &out[n];
		f->kind = ts_node_symbol(x);
		f->field = ts_tree_cursor_current_field_id(&c);
		f->start = x.context[0];
		f->end = ts_node_end_byte(x);
		f->row = x.context[1];
		f->col = x.context[2];
		TSPoint end = ts_node_end_point(x);
		f->end_row = end.row;
		f->end_col = end.column;
		f->named = ts_node_is_named(x) | (ts_node_is_missing(x) << 1);
		f->size = 1;
		n++;
		uint32_t children = ts_node_child_count(x);
		if (children > 0 && ts_tree_cursor_goto_first_child(&c)) {
			if (depth == room) {
				above *wider = arena_alloc(2 * room * sizeof *open);
				open = memcpy(wider, open, room * sizeof *open);
				room *= 2;
			}
			open[depth++] = (above){n - 1, children - 1};
			continue;
		}
		while (depth > 0 && open[depth - 1].left == 0) {
			depth--;
			out[open[depth].index].size = n - open[depth].index;
			ts_tree_cursor_goto_parent(&c);
		}
		if (depth > 0) open[depth - 1].left--;
		more = depth > 0 && ts_tree_cursor_goto_next_sibling(&c);
	}
	while (depth > 0) {
		depth--;
		out[open[depth].index].size = n - open[depth].index;
	}
	return n;
}

// text is what is parsed.
typedef struct {
	const char *bytes;
	uint32_t length;
} text;

static const char *read_text(void *payload, uint32_t at, TSPoint point, uint32_t *length) {
	const text *t = payload;
	(void)point;
	if (at >= t->length) {
		*length = 0;
		return "";
	}
	*length = t->length - at;
	return t->bytes + at;
}

// watch says when a parse has taken too long.
typedef struct {
	int64_t wall, cpu; // when it began
	flat_limits lim;
} watch;

static int64_t now(clockid_t clock) {
	struct timespec t;
	return clock_gettime(clock, &t) == 0 ? t.tv_sec * 1000000000LL + t.tv_nsec : 0;
}

static bool over(TSParseState *state) {
	const watch *w = state->payload;
	int64_t took = now(CLOCK_MONOTONIC) - w->wall;
	if (took <= w->lim.cpu) return false; // it cannot have used more
	return took > w->lim.wall || now(CLOCK_THREAD_CPUTIME_ID) - w->cpu > w->lim.cpu;
}

int parse_flat(arena *a, const void *language, const char *bytes, uint32_t length, flat_limits lim, flat_tree *out) {
	jmp_buf full;
	memset(out, 0, sizeof *out);
	if (setjmp(full) != 0) {
		// The parser goes with the arena; the few bytes that the grammar's own
		// lexer has from malloc stay behind.
		arena_leave();
		return 0;
	}
	arena_enter(a, lim.bytes, &full);
	text t = {bytes, length};
	watch w = {now(CLOCK_MONOTONIC), now(CLOCK_THREAD_CPUTIME_ID), lim};
	void *parser = ts_parser_new();
	void *tree = NULL;
	bool complete = false;
	if (ts_parser_set_language(parser, language)) {
		TSInput in = {&t, read_text, 0, NULL};
		TSParseOptions options = {&w, over};
		tree = ts_parser_parse_with_options(parser, NULL, in, options);
	}
	if (tree != NULL) {
		TSNode root = ts_tree_root_node(tree);
		out->total = ts_node_descendant_count(root);
		uint32_t most = out->total < lim.nodes ? out->total : lim.nodes;
		out->nodes = arena_alloc(most * sizeof *out->nodes);
		out->count = flatten(root, out->nodes, most);
		complete = out->count == most; // what is missing would be harm overlooked
	}
	ts_parser_delete(parser); // the tree goes with the arena
	arena_leave();
	return tree != NULL && complete;
}
