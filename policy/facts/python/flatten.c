// The declarations below are the part of tree_sitter/api.h (ABI of 0.25) that
// this needs; the header itself is inside another Go module, where the compiler
// cannot reach it.
#include "flatten.h"
#include <stdbool.h>
#include <string.h>

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

extern void *ts_parser_new(void);
extern void ts_parser_delete(void *);
extern bool ts_parser_set_language(void *, const void *);
extern void ts_parser_set_timeout_micros(void *, uint64_t);
extern void *ts_parser_parse_string(void *, const void *, const char *, uint32_t);
extern TSNode ts_tree_root_node(const void *);
extern uint32_t ts_node_descendant_count(TSNode);
extern uint16_t ts_node_symbol(TSNode);
extern uint32_t ts_node_start_byte(TSNode);
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

// flatten writes the tree under root to out, at most max nodes, and returns how
// many it wrote. What it allocates is the arena's.
static uint32_t flatten(TSNode root, flat_node *out, uint32_t max) {
	TSTreeCursor c = ts_tree_cursor_new(root);
	uint32_t n = 0, depth = 0, room = 256;
	uint32_t *open = arena_alloc(room * sizeof *open); // index of each ancestor
	bool more = true;
	while (more && n < max) {
		TSNode x = ts_tree_cursor_current_node(&c);
		flat_node *f = &out[n];
		f->kind = ts_node_symbol(x);
		f->field = ts_tree_cursor_current_field_id(&c);
		f->start = ts_node_start_byte(x);
		f->end = ts_node_end_byte(x);
		f->row = x.context[1];
		f->col = x.context[2];
		TSPoint end = ts_node_end_point(x);
		f->end_row = end.row;
		f->end_col = end.column;
		f->named = ts_node_is_named(x) | (ts_node_is_missing(x) << 1);
		f->size = 1;
		n++;
		if (ts_tree_cursor_goto_first_child(&c)) {
			if (depth == room) {
				uint32_t *wider = arena_alloc(2 * room * sizeof *open);
				open = memcpy(wider, open, room * sizeof *open);
				room *= 2;
			}
			open[depth++] = n - 1;
			continue;
		}
		while (!ts_tree_cursor_goto_next_sibling(&c)) {
			if (depth == 0 || !ts_tree_cursor_goto_parent(&c)) {
				more = false;
				break;
			}
			depth--;
			out[open[depth]].size = n - open[depth];
		}
	}
	while (depth > 0) {
		depth--;
		out[open[depth]].size = n - open[depth];
	}
	return n;
}

int parse_flat(arena *a, const void *language, const char *text, uint32_t length, uint64_t micros, size_t bytes, uint32_t max, flat_tree *out) {
	jmp_buf full;
	memset(out, 0, sizeof *out);
	if (setjmp(full) != 0) {
		// The parser goes with the arena; the few bytes that the grammar's own
		// lexer has from malloc stay behind.
		arena_leave();
		return 0;
	}
	arena_enter(a, bytes, &full);
	void *parser = ts_parser_new();
	void *tree = NULL;
	if (ts_parser_set_language(parser, language)) {
		ts_parser_set_timeout_micros(parser, micros);
		tree = ts_parser_parse_string(parser, NULL, text, length);
	}
	if (tree != NULL) {
		TSNode root = ts_tree_root_node(tree);
		out->total = ts_node_descendant_count(root);
		uint32_t most = out->total < max ? out->total : max;
		out->nodes = arena_alloc(most * sizeof *out->nodes);
		out->count = flatten(root, out->nodes, most);
	}
	ts_parser_delete(parser); // the tree goes with the arena
	arena_leave();
	return tree != NULL;
}
