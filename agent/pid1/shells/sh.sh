_caisson_next() {
  _caisson_status=
  IFS=' ' read -r _caisson_at _caisson_key _caisson_in <'{ctl}/go'
}
_caisson_was() { return "$1"; }
_caisson_opened() { command printf '%s\0opened\0\0' "$_caisson_key" >'{ctl}/end'; }
_caisson_end() { { command printf '%s\0%s\0-%s ' "${_caisson_key-}" "$1" "$-"; command times; command printf '\0'; } >'{ctl}/end'; }
PS1=
command printf '\0ready\0\0' >'{ctl}/end'
while _caisson_next; do
  . "$_caisson_at.text" <"$_caisson_in" >"$_caisson_at.out" 2>"$_caisson_at.err"
  _caisson_end "${_caisson_status:-$?}"
done
