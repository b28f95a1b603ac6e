#ifndef CAISSON_ARENA_H
#define CAISSON_ARENA_H

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

// An arena is the memory of one parse: a parser allocates and frees some
// thousand small pieces a file, and all of it is over at once. Pieces that are
// freed are used again within the parse, by size; the rest goes with the arena.
typedef struct arena arena;

// arena_new makes an arena, NULL where there is no memory for it.
arena *arena_new(void);

// arena_delete frees a, which nothing uses.
void arena_delete(arena *a);

// arena_enter has all that the parser allocates on this thread come from a,
// at most so many bytes; where that is not enough, control goes to *out.
// arena_leave ends that. Nothing that was allocated in between may be freed
// after it.
void arena_enter(arena *a, size_t most, jmp_buf *out);
void arena_leave(void);

// arena_alloc is the parser's malloc.
void *arena_alloc(size_t size);

// arena_reset forgets all of a's memory and gives back what is more than
// most files need.
void arena_reset(arena *a);

// arena_install makes arenas, and malloc where there is none, the parser's
// allocator.
void arena_install(void);

#endif
