#include "arena.h"
#include <stdlib.h>
#include <string.h>

enum {
	GRAIN = 16,              // pieces are multiples of this, and lie so
	SMALL = 64,              // classes of as many grains; above, powers of two
	CLASSES = SMALL + 32,
	CHUNK = 4 << 20,         // the least that is asked of malloc; untouched pages cost nothing
};

typedef struct chunk {
	struct chunk *next;
	size_t size;
} chunk;

// head stands before each piece, and holds its class.
typedef union {
	uint64_t class;
	char pad[8];
} head;

struct arena {
	chunk *chunks; // the newest first
	char *free, *end;
	size_t used, most; // bytes of chunks
	void *freed[CLASSES];
	jmp_buf *out;
};

static __thread arena *current;

extern void ts_set_allocator(void *(*)(size_t), void *(*)(size_t, size_t), void *(*)(void *, size_t), void (*)(void *));

static size_t class_of(size_t size) {
	size_t grains = (size + sizeof(head) + GRAIN - 1) / GRAIN;
	if (grains < SMALL) return grains;
	return SMALL + (64 - __builtin_clzll(grains - 1)) - 6; // 64 grains are the first of these
}

// room is what a piece of a class takes, its head included.
static size_t room(size_t class) {
	return class < SMALL ? class * GRAIN : (size_t)GRAIN << (class - SMALL + 6);
}

// begin has pieces come from c: each starts with its head, half a grain before
// a multiple of one, so that what follows the head is at one.
static void begin(arena *a, chunk *c) {
	c->next = a->chunks;
	a->chunks = c;
	a->used += c->size;
	a->free = (char *)(((uintptr_t)(c + 1) + GRAIN - 1) / GRAIN * GRAIN) + GRAIN - sizeof(head);
	a->end = (char *)c + c->size;
}

static void grow(arena *a, size_t need) {
	size_t size = need + sizeof(chunk) + 2 * GRAIN;
	if (size < CHUNK) size = CHUNK;
	chunk *c = a->most - a->used < size ? NULL : malloc(size);
	if (c == NULL) longjmp(*a->out, 1);
	c->size = size;
	begin(a, c);
}

void *arena_alloc(size_t size) {
	arena *a = current;
	if (a == NULL) return malloc(size);
	if (size > a->most) longjmp(*a->out, 1);
	size_t class = class_of(size);
	void **p = a->freed[class];
	if (p != NULL) {
		a->freed[class] = *p;
		return p;
	}
	size_t need = room(class);
	if ((size_t)(a->end - a->free) < need) grow(a, need);
	head *h = (head *)a->free;
	a->free += need;
	h->class = class;
	return h + 1;
}

static void *zeroed(size_t n, size_t size) {
	if (current == NULL) return calloc(n, size);
	if (size != 0 && n > SIZE_MAX / size) longjmp(*current->out, 1);
	return memset(arena_alloc(n * size), 0, n * size);
}

static void release(void *p) {
	arena *a = current;
	if (a == NULL) {
		free(p);
	} else if (p != NULL) {
		size_t class = ((head *)p - 1)->class;
		*(void **)p = a->freed[class];
		a->freed[class] = p;
	}
}

static void *resized(void *p, size_t size) {
	if (current == NULL) return realloc(p, size);
	if (p == NULL) return arena_alloc(size);
	size_t has = room(((head *)p - 1)->class) - sizeof(head);
	if (size <= has) return p;
	void *wider = arena_alloc(size);
	memcpy(wider, p, has);
	release(p);
	return wider;
}

arena *arena_new(void) { return calloc(1, sizeof(arena)); }

void arena_enter(arena *a, size_t most, jmp_buf *out) {
	a->most = most;
	a->out = out;
	current = a;
}

void arena_leave(void) { current = NULL; }

// forget frees all chunks but one that most files need no more than, which it
// gives.
static chunk *forget(arena *a) {
	chunk *c = a->chunks, *kept = NULL;
	while (c != NULL) {
		chunk *next = c->next;
		if (kept == NULL && c->size == CHUNK) kept = c;
		else free(c);
		c = next;
	}
	return kept;
}

void arena_reset(arena *a) {
	chunk *kept = forget(a);
	memset(a, 0, sizeof *a);
	if (kept != NULL) begin(a, kept);
}

void arena_delete(arena *a) {
	free(forget(a));
	free(a);
}

void arena_install(void) { ts_set_allocator(arena_alloc, zeroed, resized, release); }
