//go:build linux

#include "textflag.h"

// func vforkCalls(ops *[7]uintptr, n int, left *[2]uintptr) (pid int, errno uintptr)
//
// The child has the parent's memory and stack, and the parent stands still until the
// child has become another program or ended. So the child writes nothing but *left,
// calls nothing and never returns.
TEXT ·vforkCalls(SB), NOSPLIT|NOFRAME, $0-40
	MOVQ	ops+0(FP), BX
	MOVQ	n+8(FP), R12
	MOVQ	left+16(FP), R13
	MOVQ	$0x4111, DI // CLONE_VFORK | CLONE_VM | SIGCHLD
	MOVQ	$0, SI
	MOVQ	$0, DX
	MOVQ	$0, R10
	MOVQ	$0, R8
	MOVQ	$56, AX // clone
	SYSCALL
	TESTQ	AX, AX
	JEQ	child
	CMPQ	AX, $0xfffffffffffff001
	JCC	refused
	MOVQ	AX, pid+24(FP)
	MOVQ	$0, errno+32(FP)
	RET
refused:
	NEGQ	AX
	MOVQ	$-1, pid+24(FP)
	MOVQ	AX, errno+32(FP)
	RET
child:
	MOVQ	0(BX), AX
	MOVQ	8(BX), DI
	MOVQ	16(BX), SI
	MOVQ	24(BX), DX
	MOVQ	32(BX), R10
	MOVQ	40(BX), R8
	MOVQ	48(BX), R9
	SYSCALL
	CMPQ	AX, $0xfffffffffffff001
	JCC	failed
	ADDQ	$56, BX
	DECQ	R12
	JNE	child
failed:
	NEGQ	AX
	MOVQ	R12, 0(R13) // calls that were left, with this one
	MOVQ	AX, 8(R13)
	MOVQ	$127, DI
	MOVQ	$231, AX // exit_group
	SYSCALL
	INT	$3
