#include "tool/agent_command.hpp"

namespace lockflight::tool {

command agent_command() {
  return {
      .description =
          {"Runs the agent of this host in a cluster's domain. Locks in that domain exclude all "
           "hosts whose agents have the same etcd and the same --domain. Their clients name it "
           "etcd:D, as in 'lockflight run --domain etcd:jobs NAME -- COMMAND'. docs/cluster.md has "
           "the set-up, and what is promised.",
           "A host has one agent for each domain. It says what happens on standard error, a line "
           "of JSON for each event, and runs until SIGTERM or SIGINT. Then it gives back the "
           "names that nobody on this host holds, so that other hosts need not wait. SIGHUP is "
           "for a restart: the agent ends at once, and its host stays a member. An agent that is "
           "started within the time to live after that, or after it was killed, goes on as "
           "before.",
           "An agent that starts before etcd answers, or with a password that etcd refuses, waits: it "
           "says so on standard error and to systemd, and tries again.",
           "Each option can stand in a TOML file, without its dashes and with _ for -, such as "
           "etcd = [\"http://10.0.0.1:2379\"]. The command line comes first.",
           "'lockflight agent status' shows what the agent of this host knows: the members, the "
           "epoch, how long this host is certainly one of them, and who cannot reach whom.",
           "After several hosts were lost at once, the first holder of each name that they may "
           "have had is told that a holder died. 'lockflight agent consistent' ends that, on all "
           "hosts: say it when you have put right what they may have left half done.",
           "If etcd was restored from a copy, or set up anew, all agents refuse it. End them, and "
           "say 'lockflight agent recover' on one host that was a member: it says what it will do, "
           "asks, waits for the time to live, and makes an epoch above all that are known."},
      .options =
          {{.name = "ACTION",
            .what = "run (default), status, consistent, or recover",
            .completes = option::offer::words,
            .known = {"run", "status", "consistent", "recover"},
            .optional = true},
           {.name = "--etcd",
            .value = "URL[,URL]",
            .what = "the etcd that keeps the members, such as http://10.0.0.1:2379"},
           {.name = "--domain",
            .value = "D",
            .what = "the cluster's domain, D or, as clients name it, etcd:D (default: default)"},
           {.name = "--listen",
            .value = "HOST:PORT",
            .what =
                "where other agents reach this one (default: 0.0.0.0:7411; [::1]:7411 for IPv6)"},
           {.name = "--advertise",
            .value = "HOST:PORT",
            .what = "the address that other agents use (default: this host's name, and the port of "
                    "--listen)"},
           {.name = "--host",
            .value = "NAME",
            .what =
                "what this host is called in messages, as no other host of the domain is (default: "
                "its name)"},
           {.name = "--ttl",
            .value = "S",
            .what = "a host that is cut off is taken off after so long, 1 to 300 seconds (default: "
                    "10, or what the domain has)"},
           {.name = "--keep",
            .value = "S",
            .what = "a name that no process of this host has used for so long is given back to "
                    "the cluster, and forgotten when no host has it; 0: never (default: 600)"},
           {.name = "--user", .value = "NAME", .what = "the user of etcd"},
           {.name = "--password-file",
            .value = "FILE",
            .what = "that user's password, the first line of the file; the agent reads it again "
                    "when etcd refuses the password",
            .completes = option::offer::files},
           {.name = "--ca",
            .value = "FILE",
            .what = "the authorities whose certificates etcd may have (default: the system's)",
            .completes = option::offer::files},
           {.name = "--cert",
            .value = "FILE",
            .what = "the certificate that is shown to etcd",
            .completes = option::offer::files},
           {.name = "--key",
            .value = "FILE",
            .what = "the key of --cert",
            .completes = option::offer::files},
           {.name = "--mode",
            .value = "MODE",
            .what = "of the domain on this host: 0600, the agent's user alone; 0660, a group "
                    "(default: as it exists, or 0600)"},
           {.name = "--group",
            .value = "G",
            .what = "with --mode 0660: the group whose users may take locks"},
           {.name = "--slots",
            .value = "N",
            .what = "how many threads of this host can use the domain at a time, 3 to 4095 "
                    "(default: 4095); a quarter of them, 2 to 16, are the agent's"},
           {.name = "--names",
            .value = "N",
            .what = "how many names can have a lock on this host, 1 to 1048576 (default: 131072)"},
           {.name = "--state",
            .value = "DIR",
            .what = "where the agent notes which etcd it has seen (default: $STATE_DIRECTORY, or "
                    "/var/lib/lockflight for root, or ~/.local/state/lockflight)"},
           {.name = "--metrics",
            .value = "FILE",
            .what = "write this file each second, for Prometheus' collector of text files",
            .completes = option::offer::files},
           {.name = "--config",
            .value = "FILE",
            .what = "a TOML file with options (default: /etc/lockflight/agent.toml, if it exists)",
            .completes = option::offer::files},
           {.name = "--json", .what = "with status: print JSON"},
           {.name = "--yes", .what = "with recover: do not ask"},
           {.name = "--above",
            .value = "N",
            .what =
                "with recover: make an epoch above N as well, if another host has noted a later "
                "one than this host"}},
      .examples =
          {{"lockflight agent --etcd http://10.0.0.1:2379,http://10.0.0.2:2379 --domain jobs",
            "make this host a member of the domain jobs"},
           {"lockflight agent --etcd https://etcd:2379 --ca ca.pem --user locks "
            "--password-file /etc/lockflight/password --mode 0660 --group staff",
            "the same over TLS, for all users of the group staff"},
           {"lockflight agent status --domain jobs",
            "show the members, and how long this host is certainly one"},
           {"lockflight agent recover --domain jobs --etcd http://10.0.0.1:2379",
            "go on with an etcd that was restored from a copy"}},
      .exit_codes =
          {{0, "the agent was told to end; with status: this host is a member"},
           {1,
            "status: this host is not a member now, or its agent does not run; recover: "
            "the answer was not yes"},
           {2, "bad usage; one line on standard error says what is accepted"},
           {3,
            "the agent cannot begin or go on, such as with another etcd than before; "
            "recover: the etcd is not recovered, or this host could not note it; the last "
            "line says why"}},
      .run = nullptr,
  };
}

}  // namespace lockflight::tool
