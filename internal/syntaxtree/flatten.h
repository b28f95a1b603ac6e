#ifndef CAISSON_FLATTEN_H
#define CAISSON_FLATTEN_H

#include "arena.h"
#include <stdint.h>

// One node of a syntax tree, in pre-order. size is the number of nodes of the
// subtree, itself included.
typedef struct {
	uint16_t kind, field;
	uint32_t start, end, row, col, end_row, end_col, size, named;
} flat_node;

// A syntax tree, in an arena.
typedef struct {
	flat_node *nodes;
	uint32_t count;
	uint32_t total; // what there was before the limit
} flat_tree;

// How much a parse may use: of processor time, of time in all where the machine
// is busy with other things, and of memory.
typedef struct {
	int64_t cpu, wall; // nanoseconds
	size_t bytes;
	uint32_t nodes; // that are copied
} flat_limits;

// parse_flat parses a text of a language (a TSLanguage) and copies the tree to
// a. It returns 0 where the parser gave up at a limit. Reading a tree in one
// call, not in six for each node, is what makes it quick: crossing into C costs
// more than the work there.
int parse_flat(arena *a, const void *language, const char *text, uint32_t length, flat_limits lim, flat_tree *out);

#endif
