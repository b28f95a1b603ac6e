#ifndef CAISSON_FLATTEN_H
#define CAISSON_FLATTEN_H

#include <stdint.h>

// One node of a syntax tree, in pre-order. size is the number of nodes of the
// subtree, itself included.
typedef struct {
	uint16_t kind, field;
	uint32_t start, end, row, col, end_row, end_col, size, named;
} flat_node;

// flatten writes the tree under root (a TSNode, of which node points to a
// copy) to out, at most max nodes, and returns how many it wrote.
uint32_t flatten(const void *node, flat_node *out, uint32_t max);

// own_allocator has the parser call malloc itself. The Go binding routes every
// allocation through Go, and from there to the same malloc; that is a third of
// the time of a parse.
void own_allocator(void);

#endif
