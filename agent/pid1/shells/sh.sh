_caisson_next() {
  command exec <'{own}.in' >'{own}.out' 2>'{own}.err'
  _caisson_status=
  command : <"{ctl}/$_caisson_n.go" && { IFS= read -r _caisson_key && IFS= read -r _caisson_in && IFS= read -r _caisson_text; } <"{ctl}/$_caisson_n.run" || return
  _caisson_at={dir}/$_caisson_n _caisson_n=$((_caisson_n + 1))
  [ "$_caisson_in" != /dev/null ] || _caisson_name {name}
}
_caisson_was() { return "$1"; }
_caisson_name() { command printf %s "$1" >|/proc/thread-self/comm; }
_caisson_opened() { _caisson_name {name}; command printf ! >'{ctl}/end'; }
_caisson_end() {
  case $- in *e*) set -- "$1e" ;; esac
  { command times; _caisson_name "${_caisson_key-}$1"; command printf !; } <'{ctl}/driver' >'{ctl}/end' 2>/dev/null || command exit 1
}
PS1=
: "${_caisson_n:=0}"
while _caisson_next; do
  . "$_caisson_text" <"$_caisson_in" >"$_caisson_at.out" 2>"$_caisson_at.err"
  _caisson_end "${_caisson_status:-$?}"
done
