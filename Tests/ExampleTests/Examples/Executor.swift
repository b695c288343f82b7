import Coalescing
import CoalescingPlaces

func printBursts(clock: ManualClock, print: @escaping @Sendable (String) -> Void) {
    let bursts = CoalescingExecutor<[Int]>(
        coalesceWait: .milliseconds(20), maxWait: .milliseconds(60), timers: clock.timers, on: InlineQueue.shared,
        combine: { $0 += $1 }, act: { print("[\($0[0])…\($0[$0.count - 1])]") })
    for number in 1...18 {
        bursts.add([number])
        clock.advance(by: .milliseconds(10))
    }
}
