_caisson_next() {
  _caisson_status=
  \builtin mapfile -t -d '' -n 3 _caisson_go <'{ctl}/go' &&
    \builtin mapfile -t -d '' -n 1 _caisson_text <"${_caisson_go[0]}.text"
}
_caisson_was() { return "$1"; }
_caisson_opened() { \builtin printf '%s\0opened\0\0' "${_caisson_go[1]}" >'{ctl}/end'; }
_caisson_end() { { \builtin printf '%s\0%s\0-%s ' "${_caisson_go[1]-}" "$1" "$-"; \builtin times; \builtin printf '\0'; } >'{ctl}/end'; }
PS1=
\builtin eval "${_caisson_debug-}"
\builtin printf '\0ready\0\0' >'{ctl}/end'
while _caisson_next; do
  \builtin eval "$_caisson_text" <"${_caisson_go[2]}" >"${_caisson_go[0]}.out" 2>"${_caisson_go[0]}.err"
  _caisson_end "${_caisson_status:-$?}"
done
