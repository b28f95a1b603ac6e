//go:build linux

#include "textflag.h"

// func vforkCalls(ops *[7]uintptr, n int, left *[2]uintptr) (pid int, errno uintptr)
//
// What holds in vforkcalls_amd64.s holds here too.
TEXT ·vforkCalls(SB), NOSPLIT, $0-40
	MOVD	ops+0(FP), R19
	MOVD	n+8(FP), R20
	MOVD	left+16(FP), R21
	MOVD	$0x4111, R0 // CLONE_VFORK | CLONE_VM | SIGCHLD
	MOVD	$0, R1
	MOVD	$0, R2
	MOVD	$0, R3
	MOVD	$0, R4
	MOVD	$220, R8 // clone
	SVC
	CBZ	R0, child
	CMN	$4095, R0
	BCS	refused
	MOVD	R0, pid+24(FP)
	MOVD	ZR, errno+32(FP)
	RET
refused:
	NEG	R0, R0
	MOVD	$-1, R1
	MOVD	R1, pid+24(FP)
	MOVD	R0, errno+32(FP)
	RET
child:
	MOVD	0(R19), R8
	MOVD	8(R19), R0
	MOVD	16(R19), R1
	MOVD	24(R19), R2
	MOVD	32(R19), R3
	MOVD	40(R19), R4
	MOVD	48(R19), R5
	SVC
	CMN	$4095, R0
	BCS	failed
	ADD	$56, R19
	SUBS	$1, R20
	BNE	child
failed:
	NEG	R0, R0
	MOVD	R20, 0(R21) // calls that were left, with this one
	MOVD	R0, 8(R21)
	MOVD	$127, R0
	MOVD	$94, R8 // exit_group
	SVC
	UNDEF
