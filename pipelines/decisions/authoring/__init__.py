"""What helps whoever writes policies, and whoever answers for them.

    schema     the document's shape for an editor
    diff       what changed between two versions, in words (`words`: numbers and conditions as a person says them)
    statement  what policies do on their own with personal information, for a privacy policy

Nothing here decides anybody.
"""
