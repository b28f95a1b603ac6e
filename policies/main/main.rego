# METADATA
# scope: package
# title: All findings about one program
# description: The union of what every topic, the blacklist and the users' rules found.
package caisson.main

findings contains f if {
	some topic
	some f in data.caisson.rules[topic].findings
}

findings contains f if some f in data.caisson.blacklist.findings

# A user's finding says whose it is, so that it can only be added.
findings contains f if {
	some bundle
	some said in data.caisson.user[bundle].findings
	f := object.union(said, {"user": bundle})
}
