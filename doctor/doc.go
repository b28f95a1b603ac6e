// Package doctor finds out whether caisson can work here: it examines the
// engine, the host and caisson's own parts, and says for each what is wrong and
// what mends it.
//
// It repairs nothing. It works without any of what it examines: a part that
// could not be built is handed to it as the error of building it, and becomes
// a line like every other.
//
// Each check is one function of a table. It returns one finding and asks
// nothing but its [Config] and what [Doctor.Examine] gathered once: the
// engine's facts.
package doctor
