// SPDX-License-Identifier: Apache-2.0
//! The registers of the guest's own memory protection unit (Arm DDI 0403E.e, B3.5).
//!
//! Only what the guest wrote is kept here. `arch/regions` plans what the physical unit does of it, combined
//! with the partition's own regions.

use bulkhead_arch_regions::GuestRegion;

/// Regions a guest's unit can have.
pub const MAX_MPU_REGIONS: usize = 8;

const ENABLE: u32 = 1;
const HFNMIENA: u32 = 1 << 1;
const PRIVDEFENA: u32 = 1 << 2;
const VALID: u32 = 1 << 4;
/// Bits of MPU_RASR that exist: XN, AP, TEX, S, C, B, SRD, SIZE, ENABLE.
const ATTRIBUTES: u32 = 0x173F_FF3F;

/// The unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mpu {
    count: u8,
    control: u32,
    number: u8,
    regions: [GuestRegion; MAX_MPU_REGIONS],
}

impl Mpu {
    pub(crate) const fn new(count: u8) -> Self {
        let count = if count as usize > MAX_MPU_REGIONS {
            MAX_MPU_REGIONS as u8
        } else {
            count
        };
        Self {
            count,
            control: 0,
            number: 0,
            regions: [GuestRegion {
                base: 0,
                attributes: 0,
            }; MAX_MPU_REGIONS],
        }
    }

    pub(crate) const fn enabled(&self) -> bool {
        self.control & ENABLE != 0
    }

    pub(crate) const fn enabled_in_faults(&self) -> bool {
        self.control & HFNMIENA != 0
    }

    pub(crate) const fn background(&self) -> bool {
        self.control & PRIVDEFENA != 0
    }

    pub(crate) fn regions(&self) -> &[GuestRegion] {
        self.regions.get(..usize::from(self.count)).unwrap_or(&[])
    }

    fn selected(&mut self) -> Option<&mut GuestRegion> {
        let number = self.number;
        self.regions
            .get_mut(usize::from(number))
            .filter(|_| number < self.count)
    }

    /// Reads the register at `offset` from 0xE000ED90.
    pub(crate) fn read(&self, offset: u32) -> u32 {
        let region = self
            .regions
            .get(usize::from(self.number))
            .copied()
            .unwrap_or_default();
        match offset {
            0x00 => u32::from(self.count) << 8,
            0x04 => self.control,
            0x08 => u32::from(self.number),
            0x0C | 0x14 | 0x1C | 0x24 => region.base | u32::from(self.number),
            0x10 | 0x18 | 0x20 | 0x28 => region.attributes,
            _ => 0,
        }
    }

    /// Writes the register at `offset` from 0xE000ED90; whether anything has changed for accesses. A write of
    /// the same value, or to a region that is and stays off, changes nothing: an RTOS does so at every
    /// switch, and each change costs a combination.
    pub(crate) fn write(&mut self, offset: u32, value: u32) -> bool {
        let changed = match offset {
            0x04 => {
                let old = core::mem::replace(&mut self.control, value & (ENABLE | HFNMIENA | PRIVDEFENA));
                return old != self.control;
            }
            0x08 => {
                if value < u32::from(self.count) {
                    self.number = value as u8;
                }
                false
            }
            0x0C | 0x14 | 0x1C | 0x24 => {
                if value & VALID != 0 {
                    let number = (value & 0xF) as u8;
                    if number >= self.count {
                        return false;
                    }
                    self.number = number;
                }
                self.selected()
                    .is_some_and(|region| region.replace(value & !0x1F, region.attributes))
            }
            0x10 | 0x18 | 0x20 | 0x28 => self
                .selected()
                .is_some_and(|region| region.replace(region.base, value & ATTRIBUTES)),
            _ => false,
        };
        changed && self.enabled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_selected_by_its_number_or_along_with_its_address() {
        let mut mpu = Mpu::new(8);
        mpu.write(0x08, 3);
        mpu.write(0x0C, 0x2000_0000);
        mpu.write(0x10, 0x0306_0025);
        mpu.write(0x14, 0x2001_0000 | VALID | 5);
        assert_eq!(mpu.read(0x0C), 0x2001_0005);
        assert_eq!(
            mpu.regions()[3],
            GuestRegion {
                base: 0x2000_0000,
                attributes: 0x0306_0025
            }
        );
        assert_eq!(mpu.regions()[5].base, 0x2001_0000);
        assert_eq!(mpu.read(0), 0x800);
    }

    #[test]
    fn only_what_changes_for_accesses_is_a_change() {
        let mut mpu = Mpu::new(8);
        assert!(!mpu.write(0x0C, 0x2000_0000 | VALID | 3), "the unit is off");
        assert!(!mpu.write(0x10, 0x0306_0025), "the unit is off");
        assert!(mpu.write(0x04, ENABLE | PRIVDEFENA));
        assert!(!mpu.write(0x04, ENABLE | PRIVDEFENA));
        assert!(!mpu.write(0x0C, 0x2000_0000 | VALID | 3));
        assert!(!mpu.write(0x10, 0x0306_0025));
        assert!(mpu.write(0x0C, 0x2000_0100 | VALID | 3));
        assert!(mpu.write(0x10, 0x0306_0027));
        assert!(mpu.write(0x10, 0x0306_0026), "switched off");
        assert!(!mpu.write(0x0C, 0x2000_0000 | VALID | 3), "the region is off");
        assert!(!mpu.write(0x10, 0x0206_0024), "and stays off");
        assert!(mpu.write(0x10, 0x0206_0025), "switched on");
        assert!(mpu.write(0x04, 0));
        assert_eq!(mpu.read(0x0C), 0x2000_0003);
    }

    #[test]
    fn regions_that_do_not_exist_are_never_selected() {
        let mut mpu = Mpu::new(4);
        mpu.write(0x08, 2);
        mpu.write(0x08, 4);
        mpu.write(0x0C, 0xFFFF_FFE0 | VALID | 15);
        assert_eq!(mpu.read(0x08), 2);
        assert_eq!(mpu.regions().len(), 4);
        let mut none = Mpu::new(0);
        none.write(0x0C, 0x2000_0000);
        assert!(none.regions().is_empty());
    }
}
