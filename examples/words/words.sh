#!/usr/bin/env bash
# Counts the lines, words and characters of a text, its most frequent words
# and the lengths of its sentences.
#
#     words.sh TEXT
set -euo pipefail

text=${1:?usage: words.sh TEXT}

# One word a line, in lower case.
words() { tr -cs "[:alpha:]'" '\n' <"$text" | tr '[:upper:]' '[:lower:]' | grep -v '^$'; }

read -r lines count chars < <(wc -lwm <"$text" | tr -s ' ')
echo "$lines lines, $count words, $chars characters, $(words | sort -u | wc -l) different words"

echo
echo "most frequent, of four letters and more:"
words | grep -E '^.{4,}$' | sort | uniq -c | sort -k1,1nr -k2,2 | head -n 8 |
	while read -r n word; do printf '%5d  %s\n' "$n" "$word"; done

echo
echo "sentences by their number of words:"
tr '\n' ' ' <"$text" | tr '.!?' '\n\n\n' | awk '
	NF { bucket = int((NF - 1) / 10); n[bucket]++; if (bucket > top) top = bucket }
	END {
		for (b = 0; b <= top; b++) {
			bar = sprintf("%" n[b] "s", ""); gsub(/ /, "#", bar)
			printf "%3d-%-3d %3d %s\n", b * 10 + 1, b * 10 + 10, n[b], bar
		}
	}'
