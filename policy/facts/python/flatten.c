// A syntax tree is read in one call, not in six calls for each node: crossing
// into C costs more than the work there. The declarations below are the part
// of tree_sitter/api.h (ABI of 0.25) that this needs; the header itself is
// inside another Go module, where the compiler cannot reach it.
#include "flatten.h"
#include <stdbool.h>
#include <stdlib.h>

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

extern void ts_set_allocator(void *(*)(size_t), void *(*)(size_t, size_t), void *(*)(void *, size_t), void (*)(void *));
extern uint16_t ts_node_symbol(TSNode);
extern uint32_t ts_node_start_byte(TSNode);
extern uint32_t ts_node_end_byte(TSNode);
extern TSPoint ts_node_end_point(TSNode);
extern bool ts_node_is_named(TSNode);
extern bool ts_node_is_missing(TSNode);
extern TSTreeCursor ts_tree_cursor_new(TSNode);
extern void ts_tree_cursor_delete(TSTreeCursor *);
extern TSNode ts_tree_cursor_current_node(const TSTreeCursor *);
extern uint16_t ts_tree_cursor_current_field_id(const TSTreeCursor *);
extern bool ts_tree_cursor_goto_parent(TSTreeCursor *);
extern bool ts_tree_cursor_goto_next_sibling(TSTreeCursor *);
extern bool ts_tree_cursor_goto_first_child(TSTreeCursor *);

uint32_t flatten(const void *node, flat_node *out, uint32_t max) {
	TSTreeCursor c = ts_tree_cursor_new(*(const TSNode *)node);
	uint32_t n = 0, depth = 0, room = 64;
	uint32_t *open = malloc(room * sizeof *open); // index of each ancestor
	bool more = open != NULL;
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
				uint32_t *wider = realloc(open, 2 * room * sizeof *open);
				if (wider == NULL) break;
				open = wider;
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
	free(open);
	ts_tree_cursor_delete(&c);
	return n;
}

void own_allocator(void) { ts_set_allocator(NULL, NULL, NULL, NULL); }
