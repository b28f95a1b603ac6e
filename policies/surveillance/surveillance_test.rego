package caisson.rules.surveillance_test

import data.caisson.rules.surveillance

test_speaks_of_what_it_names if {
	some f in surveillance.findings with input as {"actions": {"screen": [{"at": 0, "op": "screen", "detail": "", "by": "x", "args": []}]}}
	f.id == "SBX-SUR-0001"
	f.at == 0
}

test_is_silent_about_the_rest if {
	count(surveillance.findings) == 0 with input as {"actions": {"kill": [{"at": 0, "op": "kill", "detail": "", "by": "kill", "args": []}]}}
}

test_is_silent_about_nothing if {
	count(surveillance.findings) == 0 with input as {}
}

test_watching_is_medium_where_nothing_calls_it if {
	watch := {"at": 0, "op": "host_watch", "detail": "psutil", "by": "psutil.cpu_percent", "args": [], "idle": false}
	{f.id | some f in surveillance.findings} == {"SBX-SUR-0002"} with input as {"actions": {"host_watch": [watch]}}
	{f.id | some f in surveillance.findings} == {"SBX-SUR-0003"} with input as {"actions": {"host_watch": [object.union(watch, {"idle": true})]}}
}

test_all_that_watches_a_person if {
	every op in ["screen", "keys", "clipboard", "camera", "microphone"] {
		{f.id | some f in surveillance.findings} == {"SBX-SUR-0001"} with input as {"actions": {op: [{"at": 0, "op": op, "detail": "", "by": "x", "args": [], "idle": true}]}}
	}
}

test_the_clipboard_of_a_window_is_its_users if {
	paste := {"at": 0, "op": "clipboard", "detail": "Gtk.Clipboard", "by": "wait_for_text", "args": [], "idle": true}
	{f.id | some f in surveillance.findings} == {"SBX-SUR-0003"} with input as {"actions": {"clipboard": [paste]}}
	{f.id | some f in surveillance.findings} == {"SBX-SUR-0001"} with input as {"actions": {"clipboard": [object.union(paste, {"idle": false})]}}
}
