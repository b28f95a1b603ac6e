package sandbox

import "reflect"

// Forms says of each type that writes JSON of its own making which type has the
// fields of that: who describes this package's JSON reads them there.
func Forms() map[reflect.Type]reflect.Type {
	return map[reflect.Type]reflect.Type{
		reflect.TypeFor[Artifact]():   reflect.TypeFor[artifactJSON](),
		reflect.TypeFor[ChangeNews](): reflect.TypeFor[changeNewsJSON](),
		reflect.TypeFor[File]():       reflect.TypeFor[fileJSON](),
		reflect.TypeFor[FileChange](): reflect.TypeFor[changeJSON](),
		reflect.TypeFor[FileDiff]():   reflect.TypeFor[fileDiffJSON](),
		reflect.TypeFor[FileEvent]():  reflect.TypeFor[fileEventJSON](),
		reflect.TypeFor[FileInfo]():   reflect.TypeFor[infoJSON](),
		reflect.TypeFor[Result]():     reflect.TypeFor[resultJSON](),
		reflect.TypeFor[Usage]():      reflect.TypeFor[usageJSON](),
	}
}

// The forms that are made of two.
type (
	changeNewsJSON struct {
		newsHead
		changeJSON
	}
	fileDiffJSON struct {
		changeJSON
		diffTail
	}
)
