_caisson_next() {
  \command exec <'{own}.in' >'{own}.out' 2>'{own}.err'
  _caisson_status=
  \builtin : <"{ctl}/$_caisson_n.go" &&
    \builtin mapfile -t -d '' -n 3 _caisson_go <"{ctl}/$_caisson_n.run" || \builtin return
  _caisson_at={dir}/$((_caisson_n++))
  [[ ${_caisson_go[1]} != /dev/null ]] || _caisson_name {name}
}
_caisson_was() { return "$1"; }
_caisson_name() { \builtin printf %s "$1" >|/proc/thread-self/comm; }
_caisson_opened() { _caisson_name {name}; \builtin printf ! >'{ctl}/end'; }
_caisson_end() {
  [[ ! -o errexit ]] || \builtin set -- "$1e"
  { \builtin times; _caisson_name "${_caisson_go[0]-}$1"; \builtin printf !; } <'{ctl}/driver' >'{ctl}/end' 2>/dev/null || \builtin exit 1
}
PS1=
: "${_caisson_n:=0}"
[[ ${_caisson_trace-T} == *T* ]] || \builtin set +T
while _caisson_next; do
  \builtin eval "${_caisson_go[2]}" <"${_caisson_go[1]}" >"$_caisson_at.out" 2>"$_caisson_at.err"
  _caisson_end "${_caisson_status:-$?}"
done
