import Coalescing
import CoalescingPlaces

/// The addresses of a host.
struct Resolve: Work {
    let host: String
    let network: Network

    func begin(_ completion: Completion<[String]>) { network.resolve(host) { completion.finish($0) } }
}

/// A connection to one of them.
struct Connect: Work {
    let addresses: [String]
    let port: Int
    let network: Network

    func begin(_ completion: Completion<Connection>) { network.connect(addresses, port) { completion.finish($0) } }
}

/// Connections by host and port. All ports of a host share its addresses.
struct Connections {
    let network: Network
    let resolutions = OperationQueueManager<String>()
    let connections: OperationQueueManager<String>

    init(network: Network, log: @escaping @Sendable (String) -> Void) {
        self.network = network
        let observer = OperationObserver(of: .finished, .cancelled) { notice in
            log("\(notice.phase), \(notice.error?.name ?? "no error")")
        }
        connections = OperationQueueManager(observers: [observer])
    }

    func connect(to host: String, port: Int, waiter: Waiter<Connection>) {
        let task = OperationTask(
            after: { resolutions.enqueue(host, waiter: nil) { Resolve(host: host, network: network) } },
            make: { addresses in Connect(addresses: addresses, port: port, network: network) })
        _ = connections.enqueue("\(host):\(port)", waiter: waiter, task: task)
    }
}
