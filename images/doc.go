// Package images turns a language, or an image that a user names, into a
// [sandbox.Image] that is present in the engine.
//
// A [Catalogue] is data: embedded YAML that says for each language how its
// programs are run and what its image is made of. A [Store] makes the image
// present: an image that is there is taken as it is; one that is missing is
// pulled, or built from its Dockerfile, or assembled from Debian packages by
// mmdebstrap and loaded into the engine as two layers, a base that the
// languages share and what the language adds. The bytes of an assembled image follow from its packages
// alone: the same packages give the same image ID.
//
// It does not run anything in an image, and it knows nothing of sandboxes.
//
// Several goroutines and several processes that want one image make it once:
// a file lock in the state folder lets one of them work, and the others find
// the image present. An assembly that ends early, by an error, by its context
// or by the death of its process, leaves at most a folder that the next one
// removes.
package images
