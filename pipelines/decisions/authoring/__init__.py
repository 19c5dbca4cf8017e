"""Help for those who write policies or answer for them. Nothing here makes decisions.

schema     JSON Schema of documents, for editors
diff       what changed between two versions, in words (`words`: numbers and conditions in words)
statement  automated decisions and the personal information they use, for a privacy policy
"""
