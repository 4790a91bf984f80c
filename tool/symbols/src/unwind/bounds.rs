//! How much work the rules of unwind tables make. Those of a file made to mislead may hold a loop that never ends, or millions
//! of steps for each call, and the library that carries them out counts none.

use gimli::{
    BaseAddresses, CallFrameInstruction, CallFrameInstructionIter, EhFrame, EhFrameHdr, EndianSlice,
    LittleEndian, Operation, UnwindExpression, UnwindSection,
};

use super::elf::Table;

/// Most steps for one call. Compilers write some hundred at most.
const STEPS_MAX: usize = 10_000;

/// Addresses are of 8 bytes.
const ADDRESS_SIZE: u8 = 8;

type Bytes<'t> = EndianSlice<'t, LittleEndian>;

/// Whether the rules for an address, as the file counts addresses, are carried out in a bounded number of steps: expressions may
/// not jump, which no compiler has them do. True where there are none.
pub(super) fn is_bounded([index, table]: &[Table; 2], address: u64) -> bool {
    let bases = BaseAddresses::default().set_eh_frame_hdr(index.address).set_eh_frame(table.address);
    let mut rules = EhFrame::new(&table.bytes, LittleEndian);
    rules.set_address_size(ADDRESS_SIZE);
    let Some(steps) = steps(index, &rules, &bases, address) else { return true };
    steps <= STEPS_MAX
}

/// The steps for an address, if it has any; more than are allowed where they may be without end.
fn steps(index: &Table, rules: &EhFrame<Bytes<'_>>, bases: &BaseAddresses, address: u64) -> Option<usize> {
    let index = EhFrameHdr::new(&index.bytes, LittleEndian).parse(bases, ADDRESS_SIZE).ok()?;
    let index = index.table()?;
    let pointer = index.lookup(address, bases).ok()?;
    let offset = index.pointer_to_offset(pointer).ok()?;
    let entry = rules.fde_from_offset(bases, offset, EhFrame::cie_from_offset).ok()?;
    if !entry.contains(address) {
        return None;
    }
    let common = counted(entry.cie().instructions(rules, bases), rules);
    Some(common.saturating_add(counted(entry.instructions(rules, bases), rules)))
}

/// Counts the steps of instructions and of the expressions in them, up to the first that cannot be parsed: there the library
/// gives up too.
fn counted(mut instructions: CallFrameInstructionIter<'_, Bytes<'_>>, rules: &EhFrame<Bytes<'_>>) -> usize {
    let mut steps = 0_usize;
    while let Ok(Some(instruction)) = instructions.next() {
        let of_expression = match instruction {
            CallFrameInstruction::DefCfaExpression { expression }
            | CallFrameInstruction::Expression { expression, .. }
            | CallFrameInstruction::ValExpression { expression, .. } => of_expression(expression, rules),
            _ => 0,
        };
        steps = steps.saturating_add(1).saturating_add(of_expression);
        if steps > STEPS_MAX {
            break;
        }
    }
    steps
}

fn of_expression(expression: UnwindExpression<usize>, rules: &EhFrame<Bytes<'_>>) -> usize {
    let Ok(expression) = expression.get(rules) else { return 0 };
    let encoding = gimli::Encoding { address_size: ADDRESS_SIZE, format: gimli::Format::Dwarf32, version: 4 };
    let mut operations = expression.operations(encoding);
    let mut steps = 0;
    while let Ok(Some(operation)) = operations.next() {
        match operation {
            Operation::Bra { .. } | Operation::Skip { .. } => return usize::MAX,
            _ => steps += 1,
        }
    }
    steps
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Where the file says that the code and the index are; the table follows the index.
    pub(in crate::unwind) const CODE: u64 = 0x10_0000;
    const INDEX: u64 = 0x1000;
    const TABLE: u64 = 0x2000;
    /// Jumps back to itself.
    pub(in crate::unwind) const LOOP: &[u8] = &[DEF_CFA_EXPRESSION, 3, 0x2f, 0xfd, 0xff];
    const DEF_CFA_EXPRESSION: u8 = 0x0f;
    /// Register 7 plus 8, as in procedure linkage tables.
    const USUAL: &[u8] = &[DEF_CFA_EXPRESSION, 2, 0x77, 8];

    fn entry(content: &[u8]) -> Vec<u8> {
        [&u32::try_from(content.len()).unwrap().to_le_bytes(), content].concat()
    }

    /// Tables that have these instructions for all code from an address on.
    pub(in crate::unwind) fn tables(code: u64, instructions: &[u8]) -> [Table; 2] {
        let common = [&[0, 0, 0, 0, 1][..], b"zR\0", &[1, 0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1]].concat();
        let mut table = entry(&common);
        let second = table.len();
        let back = u32::try_from(second + 4).unwrap().to_le_bytes();
        let range = [code.to_le_bytes(), (1_u64 << 40).to_le_bytes()].concat();
        table.extend(entry(&[&back[..], &range, &[0], instructions].concat()));
        table.extend([0; 4]);
        // Addresses in the index count from where it begins.
        let from_index =
            |address: u64| i32::try_from(address.cast_signed() - INDEX.cast_signed()).unwrap().to_le_bytes();
        let mut index = [&[1, 0x04, 0x03, 0x3b][..], &TABLE.to_le_bytes(), &1_u32.to_le_bytes()].concat();
        index.extend([from_index(code), from_index(TABLE + second as u64)].concat());
        [(INDEX, index), (TABLE, table)].map(|(address, bytes)| Table { address, bytes: bytes.into() })
    }

    #[test]
    fn usual_rules_are_bounded_and_loops_and_millions_of_steps_are_not() {
        let is_bounded = |instructions: &[u8]| is_bounded(&tables(CODE, instructions), CODE + 5);
        assert!(is_bounded(&[]) && is_bounded(USUAL));
        assert!(!is_bounded(LOOP));
        assert!(!is_bounded(&[USUAL, LOOP].concat()), "wherever it is");
        assert!(!is_bounded(&[0; STEPS_MAX + 1]), "steps that do nothing");
        let long = [&[DEF_CFA_EXPRESSION, 0xff, 0x7f][..], &[0x96; 0x3fff]].concat();
        assert!(!is_bounded(&long), "an expression of steps that do nothing");
        let forward = [DEF_CFA_EXPRESSION, 4, 0x2f, 1, 0, 0x96];
        assert!(!is_bounded(&forward), "no compiler writes jumps");
    }

    #[test]
    fn what_has_no_rules_is_bounded() {
        assert!(is_bounded(&tables(CODE, LOOP), CODE - 1));
        let [index, table] = tables(CODE, LOOP);
        let cut = Table { bytes: table.bytes[..20].into(), ..table };
        assert!(is_bounded(&[index, cut], CODE));
    }
}
