"""Faults of a cluster. Each is begun on a target that is chosen at random, and ends later: what
begins one returns what ends it, or None if there was nothing to break."""

import time

from .host import DOMAIN
from .links import CUT, OPEN, SWALLOWS

# The keys of a cluster that it may lose without a command of its operator. Without its epoch or its
# secret all agents end, and say so.
LOST_KEYS = ("member/", "beat/", "evicted/", "cluster")


class Faults:
    """`random` decides which, where and for how long; `crew` notes kills and stops of clients."""

    def __init__(self, cluster, random, crew):
        self.cluster = cluster
        self.random = random
        self.crew = crew
        self.kinds = {
            self.client_killed: 6, self.client_stopped: 3, self.agent_killed: 4,
            self.agent_stopped: 3, self.host_stopped: 2, self.host_dies: 2, self.etcd_killed: 2,
            self.etcd_stopped: 2, self.etcd_leader_stopped: 2, self.all_etcd_stopped: 1,
            self.key_deleted: 3,
            self.link_fails: 4, self.peers_part: 3, self.host_without_peers: 2,
            self.host_without_etcd: 2, self.host_alone: 2, self.connections_break: 2,
            self.links_are_slow: 2}

    def begin(self):
        """(what it is called, where, what ends it), or None."""
        kind, = self.random.choices(list(self.kinds), list(self.kinds.values()))
        begun = kind()
        return begun and (kind.__name__, *begun)

    def host(self):
        return self.random.choice(self.cluster.hosts)

    # ---- clients ----

    def client(self):
        return self.random.choice([(host, each) for host in self.cluster.hosts
                                   for each in host.clients] or [(None, None)])

    def client_killed(self):
        host, client = self.client()
        if client is None:
            return None
        self.crew.kill(host, client)
        return client.label, lambda: self.crew.fill(host)

    def client_stopped(self):
        host, client = self.client()
        if client is None or client.is_stopped:
            return None
        self.crew.stop(client)
        return client.label, lambda: self.crew.go_on(client)

    # ---- agents ----

    def agent_killed(self):
        host = self.host()
        if not host.agent:
            return None
        host.agent.kill()
        host.agent = None
        return host.name, lambda: self.crew.start_agent(host)

    def agent_stopped(self):
        host = self.host()
        if not host.agent or host.agent.is_stopped:
            return None
        agent = host.agent
        agent.stop()
        return host.name, agent.go_on

    # ---- hosts ----

    def host_stopped(self):
        """A virtual machine that is halted; its clocks go on."""
        host = self.host()
        if not host.agent or host.agent.is_stopped:
            return None
        agent, clients = host.agent, [each for each in host.clients if not each.is_stopped]
        agent.stop()
        for each in clients:
            self.crew.stop(each)

        def end():
            agent.go_on()
            for each in clients:
                self.crew.go_on(each)
        return host.name, end

    def host_dies(self):
        host = self.host()
        if not host.agent:
            return None
        for each in list(host.clients):
            self.crew.kill(host, each)
        host.die()

        def end():
            self.crew.start_agent(host)
            self.crew.fill(host)
        return host.name, end

    # ---- etcd ----

    def member(self):
        return self.random.choice(self.cluster.etcd.members)

    def etcd_killed(self):
        member = self.member()
        if member.process is None:
            return None
        member.process.kill()
        member.process = None
        return member.name, lambda: self.cluster.etcd.start(member)

    def etcd_stopped(self, member=None):
        member = member or self.member()
        if member.process is None or member.process.is_stopped:
            return None
        process = member.process
        process.stop()
        return member.name, process.go_on

    def etcd_leader_stopped(self):
        leader = self.cluster.etcd.leader()
        return leader and self.etcd_stopped(leader)

    def all_etcd_stopped(self):
        running = [each.process for each in self.cluster.etcd.members
                   if each.process and not each.process.is_stopped]
        for each in running:
            each.stop()

        def end():
            for each in running:
                each.go_on()
        return "all", end

    def key_deleted(self):
        prefix = f"lockflight/{DOMAIN}/"
        try:
            keys = [each[len(prefix):] for each in self.cluster.etcd.keys(prefix)]
            key = self.random.choice([each for each in keys if each.startswith(LOST_KEYS)])
            self.cluster.etcd.delete(prefix + key)
        except (OSError, IndexError):  # etcd does not answer, or has no such key
            return None
        return key, lambda: None

    # ---- links ----

    def fail(self, where, links):
        """All of them, in one way. Links that have failed already are left alone."""
        links = [each for each in links if each.state == OPEN and not each.delay]
        if not links:
            return None
        state = self.random.choice([CUT, SWALLOWS])
        breaks = self.random.random() < 0.5
        for each in links:
            each.set(state)

        def end():
            for each in links:
                if breaks:
                    each.reset()
                each.set(OPEN)
        return f"{where} {state}", end

    def link_fails(self):
        link = self.random.choice(self.cluster.links)
        return self.fail(str(link), [link])

    def peers_part(self):
        if len(self.cluster.hosts) < 2:
            return None
        one, other = self.random.sample(self.cluster.hosts, 2)
        return self.fail(f"{one.name}-{other.name}", self.cluster.between(one, other))

    def host_without_peers(self):
        host = self.host()
        return self.fail(host.name, [link for other in self.cluster.hosts if other is not host
                                     for link in self.cluster.between(host, other)])

    def host_without_etcd(self):
        host = self.host()
        return self.fail(host.name, host.to_etcd)

    def host_alone(self):
        host = self.host()
        return self.fail(host.name, host.to_etcd + [
            link for other in self.cluster.hosts if other is not host
            for link in self.cluster.between(host, other)])

    def connections_break(self):
        links = self.random.sample(self.cluster.links, len(self.cluster.links) // 2)
        for each in links:
            each.reset()
        return f"{len(links)} links", lambda: None

    def links_are_slow(self):
        links = [each for each in self.random.sample(self.cluster.links,
                                                     len(self.cluster.links) // 2)
                 if each.state == OPEN and not each.delay]
        delay = self.random.uniform(0.001, 0.2) * self.cluster.ttl
        for each in links:
            each.set(OPEN, delay)

        def end():
            for each in links:
                each.set(OPEN)
        return f"{len(links)} links, {delay * 1000:.0f} ms", end


class Crew:
    """Keeps agents and clients on the hosts, and notes when each was stopped and killed."""

    def __init__(self, cluster, random, clients, names):
        self.cluster = cluster
        self.random = random
        self.clients = clients  # on each host
        self.names = names
        self.killed = {}     # label: when
        self.stopped = {}    # label: [(since, until)]
        self.exits = []      # of agents, by themselves: (host, code, what they said)
        self.failed = []     # clients that ended by themselves

    def start_agent(self, host):
        if host.agent is None:
            host.start_agent()

    def fill(self, host):
        while len(host.clients) < self.clients:
            host.start_client(self.random.randrange(1 << 20), names=self.names)

    def kill(self, host, client):
        self.go_on_in_history(client)
        self.killed[client.label] = time.monotonic_ns()
        client.kill()
        host.clients.remove(client)

    def stop(self, client):
        self.stopped.setdefault(client.label, []).append((time.monotonic_ns(), None))
        client.stop()

    def go_on(self, client):
        if client.is_stopped:
            client.go_on()
            self.go_on_in_history(client)

    def go_on_in_history(self, client):
        times = self.stopped.get(client.label, [])
        if times and times[-1][1] is None:
            times[-1] = times[-1][0], time.monotonic_ns()

    def supervise(self):
        """As a service manager does: what has ended by itself is started again."""
        for member in self.cluster.etcd.members:
            if member.process and member.process.exit_code() is not None:
                self.failed.append(f"etcd {member.name} ended by itself")
                self.cluster.etcd.start(member)
        for host in self.cluster.hosts:
            if host.agent and (code := host.agent.exit_code()) is not None:
                self.exits.append((host.name, code, host.said()[-1:]))
                host.agent = None
                host.start_agent()
            for each in list(host.clients):
                if (code := each.exit_code()) is not None:
                    self.failed.append(f"{each.label} ended by itself, exit code {code}")
                    host.clients.remove(each)
