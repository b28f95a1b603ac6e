package batch

// LinesOf is [Lines] with another bound.
var LinesOf = lines
