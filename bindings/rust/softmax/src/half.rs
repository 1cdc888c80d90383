//! The 16-bit types, as their bits, with the conversions that make them usable without a crate.
//!
//! With a crate for such types, transmute slices of its (transparent, 16-bit) types to these.

/// IEEE 754 binary16.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct F16(u16);

/// The upper half of a binary32.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bf16(u16);

impl F16 {
    pub const fn from_bits(bits: u16) -> F16 {
        F16(bits)
    }

    pub const fn to_bits(self) -> u16 {
        self.0
    }

    /// Rounds to nearest, ties to even; what is too large becomes infinite.
    pub fn from_f32(value: f32) -> F16 {
        let bits = value.to_bits();
        let sign = (bits >> 16 & 0x8000) as u16;
        let magnitude = bits & 0x7fff_ffff;
        if magnitude > 0x7f80_0000 {
            return F16(sign | 0x7e00);
        }
        if magnitude >= 0x4780_0000 {
            return F16(sign | 0x7c00); // 65536 and up, and infinity
        }
        if magnitude >= 0x3880_0000 {
            // Normal: the exponent's bias goes from 127 to 15; a carry may run into the exponent,
            // up to infinity, which is what rounding asks for.
            return F16(sign | round_off(magnitude - (112 << 23), 13) as u16);
        }
        let shift = 126 - (magnitude >> 23);
        if shift > 25 {
            return F16(sign); // below half of the smallest subnormal
        }
        let significand = magnitude & 0x007f_ffff | 0x0080_0000;
        F16(sign | round_off(significand, shift) as u16)
    }

    /// Exact.
    pub fn to_f32(self) -> f32 {
        let sign = u32::from(self.0 & 0x8000) << 16;
        let exponent = u32::from(self.0 >> 10 & 0x1f);
        let fraction = u32::from(self.0 & 0x03ff);
        let magnitude = match (exponent, fraction) {
            (0, _) => (fraction as f32 * 2f32.powi(-24)).to_bits(),
            (0x1f, _) => 0x7f80_0000 | fraction << 13,
            _ => (exponent + 112) << 23 | fraction << 13,
        };
        f32::from_bits(sign | magnitude)
    }
}

impl Bf16 {
    pub const fn from_bits(bits: u16) -> Bf16 {
        Bf16(bits)
    }

    pub const fn to_bits(self) -> u16 {
        self.0
    }

    /// Rounds to nearest, ties to even; what is too large becomes infinite.
    pub fn from_f32(value: f32) -> Bf16 {
        let bits = value.to_bits();
        if value.is_nan() {
            return Bf16((bits >> 16) as u16 | 0x0040);
        }
        Bf16(round_off(bits, 16) as u16)
    }

    /// Exact.
    pub fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
}

/// `bits >> shift`, rounded to nearest, ties to even. `shift` is 1 to 31.
fn round_off(bits: u32, shift: u32) -> u32 {
    let kept = bits >> shift;
    let rest = bits & ((1 << shift) - 1);
    let half = 1 << (shift - 1);
    kept + u32::from(rest > half || rest == half && kept & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_f16_survives_the_way_to_f32_and_back() {
        for bits in 0..=u16::MAX {
            let wide = F16::from_bits(bits).to_f32();
            let back = F16::from_f32(wide);
            if wide.is_nan() {
                assert!(back.to_f32().is_nan());
            } else {
                assert_eq!(back.to_bits(), bits);
            }
        }
    }

    #[test]
    fn every_bf16_survives_the_way_to_f32_and_back() {
        for bits in 0..=u16::MAX {
            let wide = Bf16::from_bits(bits).to_f32();
            let back = Bf16::from_f32(wide);
            if wide.is_nan() {
                assert!(back.to_f32().is_nan());
            } else {
                assert_eq!(back.to_bits(), bits);
            }
        }
    }

    #[test]
    fn between_two_neighbours_the_nearer_is_taken_and_the_even_one_in_the_middle() {
        // Positive finite neighbours, subnormals and the step to infinity included.
        for bits in 0..0x7c00u16 {
            let low = F16::from_bits(bits).to_f32();
            let high = if bits == 0x7bff {
                65536.0
            } else {
                F16::from_bits(bits + 1).to_f32()
            };
            let middle = (low + high) / 2.0;
            let below = f32::from_bits(middle.to_bits() - 1);
            let above = f32::from_bits(middle.to_bits() + 1);
            assert_eq!(F16::from_f32(below).to_bits(), bits);
            assert_eq!(F16::from_f32(above).to_bits(), bits + 1);
            assert_eq!(F16::from_f32(middle).to_bits(), bits + (bits & 1));
            assert_eq!(F16::from_f32(-above).to_bits(), 0x8000 | (bits + 1));
        }
    }

    #[test]
    fn known_values_have_their_known_bits() {
        for (value, f16, bf16) in [
            (1.0, 0x3c00, 0x3f80),
            (-2.0, 0xc000, 0xc000),
            (65504.0, 0x7bff, 0x4780),
            (1e9, 0x7c00, 0x4e6e),
            (f32::INFINITY, 0x7c00, 0x7f80),
            (f32::MAX, 0x7c00, 0x7f80),
            (-0.0, 0x8000, 0x8000),
        ] {
            assert_eq!(F16::from_f32(value).to_bits(), f16, "{}", value);
            assert_eq!(Bf16::from_f32(value).to_bits(), bf16, "{}", value);
        }
    }
}
