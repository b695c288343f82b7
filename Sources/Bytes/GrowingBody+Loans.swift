/// A range of another body that a joined body uses. The other body is never a joined body itself.
///
/// Parts that arrive in small pieces would make a body of thousands of loans, each with its own objects, and every send
/// to a client would pay for them. So neighbouring loans are copied together as long as they are small, the smaller
/// ones first: a byte is copied once each time that the size of its loan doubles, and the loans that stay separate have
/// some 32 KiB on average. A body of which less than half is used is copied too, so that no joined body keeps alive
/// many times the bytes it uses.
struct Loan {
    let body: GrowingBody
    let range: Range<Int>

    /// The loans for `range` of `body`. If `body` is joined itself, these are ranges of the bodies that it borrows
    /// from.
    static func of(_ range: Range<Int>, of body: GrowingBody) -> [Loan] {
        guard !body.loans.isEmpty else { return range.isEmpty ? [] : [Loan(body: body, range: range)] }
        var start = 0
        var loans: [Loan] = []
        for loan in body.loans {
            let part = range.clamped(to: start..<start + loan.range.count)
            let first = loan.range.lowerBound - start
            if !part.isEmpty {
                loans.append(Loan(body: loan.body, range: part.lowerBound + first..<part.upperBound + first))
            }
            start += loan.range.count
        }
        return loans
    }

    /// Copies small neighbours together. If there is no memory for a copy, the original loan stays.
    static func compacted(_ loans: [Loan], _ budget: MemoryBudget) -> [Loan] {
        var kept: [Loan] = []
        for loan in loans {
            var loan = loan
            if loan.range.count < loan.body.ownMemory / 2, let copy = copy([loan], budget) { loan = copy }
            while let last = kept.last, last.range.count <= loan.range.count,
                last.range.count + loan.range.count <= GrowingBody.laterPieceSize,
                let both = copy([last, loan], budget)
            {
                kept.removeLast()
                loan = both
            }
            kept.append(loan)
        }
        return kept
    }

    private static func copy(_ loans: [Loan], _ budget: MemoryBudget) -> Loan? {
        let count = loans.reduce(0) { $0 + $1.range.count }
        let copy = GrowingBody(budget: budget, expectedLength: count)
        var pieces: [ByteSlice] = []
        for loan in loans { loan.body.appendPieces(of: loan.range, to: &pieces) }
        for piece in pieces {
            guard copy.append(piece.span) == .accepted else { return nil }
        }
        copy.complete()
        return Loan(body: copy, range: 0..<count)
    }
}
